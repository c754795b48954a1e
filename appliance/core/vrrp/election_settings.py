"""What an election is told: the configuration's terms, and each advertisement heard."""

from dataclasses import dataclass
from typing import Final, Literal

from appliance.model.snapshot.virtual_router import AnnounceSettings

OWNER: Final = 255
"""Priority of the router that owns the addresses (RFC 9568 section 5.2.4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionSettings:
    """What the configuration says of one virtual router's election. Times are seconds.

    `priority` is the configured one, `own` the packed primary address that advertisements come from, `listen`
    the least time from the start to the first claim, `hand_over` the longest wait for a successor.
    """

    version: Literal[2, 3]
    router_id: int
    priority: int
    advert: float
    preempt: bool
    preempt_delay: float
    down_timer_adverts: int
    own: bytes
    listen: float
    hand_over: float
    announce: AnnounceSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """One valid advertisement: `interval` in seconds, `sender` the packed source address, `peer` its text."""

    priority: int
    interval: float
    sender: bytes
    peer: str
