"""TCP keepalive of accepted frontends and pools."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepAlive:
    """TCP keepalive, seconds and a count (HAProxy's `tcpka-idle`, `-intvl`, `-cnt`)."""

    idle: float
    interval: float
    count: int
