"""Why an address cannot be bound, worded for the operator."""

import errno
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from appliance.model.snapshot.frontends import Bind
from appliance.net.listening.port_owner import port_owner

_PRIVILEGED: Final = (
    "permission denied: ports below {first} need CAP_NET_BIND_SERVICE or net.ipv4.ip_unprivileged_port_start"
)
_FIRST_FREE_PORT: Final = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")


@dataclass(frozen=True, slots=True, kw_only=True)
class BindProblem:
    """A bind that failed, and why."""

    bind: Bind
    reason: str

    def __str__(self) -> str:
        return f"{self.bind}: {self.reason}"


class BindRefused(Exception):  # noqa: N818  # an outcome, which becomes a BindProblem
    """A bind failed; the message has the reason."""


def reason(port: int, error: OSError) -> str:
    """Return why bind(2) failed."""
    match error.errno:
        case errno.EACCES | errno.EPERM:
            return _PRIVILEGED.format(first=_first_unprivileged_port())
        case errno.EADDRINUSE:
            owner = port_owner(port)
            return f"address in use by {owner}" if owner else "address in use"
        case errno.EADDRNOTAVAIL:
            return "no interface has this address; bind [::] or set net.ipv4.ip_nonlocal_bind"
        case _:
            return error.strerror or str(error)


def may_be_given(reason: str) -> bool:
    """Return whether the reason is a privilege that this process lacks, and another of ours may have."""
    return reason.startswith(_PRIVILEGED.partition(":")[0])


def _first_unprivileged_port() -> int:
    try:
        return int(_FIRST_FREE_PORT.read_text())
    except (OSError, ValueError):
        return 1024
