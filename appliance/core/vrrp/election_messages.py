"""Inputs and outputs of an election: settings, received advertisements, states, causes, effects.

The driver, `vrrp.groups.router_group`, performs the effects in the order in which they are returned.
"""

from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import Final, Literal

from appliance.model.snapshot.virtual_router import AnnounceSettings

OWNER: Final = 255
"""Priority of the router that owns the addresses (RFC 9568 section 5.2.4)."""


class RouterState(StrEnum):
    """The states that log and status show: those of RFC 9568 section 6.3, and keepalived's FAULT."""

    INITIALIZE = "initialize"
    BACKUP = "backup"
    ACTIVE = "active"
    FAULT = "fault"


class Cause(StrEnum):
    """Why a state was entered. Log, status and tests share these words."""

    STARTED = "started"
    RESUMED = "resumed"
    ACTIVE_DOWN = "active-down"
    ACTIVE_LEFT = "active-left"
    PREEMPTED = "preempted"
    HIGHER_PRIORITY = "higher-priority"
    HIGHER_ADDRESS = "higher-address"
    HANDED_OVER = "handed-over"
    FAULT = "fault"
    RECOVERED = "recovered"
    GROUP = "sync-group"
    STOPPED = "stopped"


class Resumption(Enum):
    """How a router continues as Active after an earlier run of the program that was active.

    HANDED_ON: that run served until this moment, so switches and neighbours are up to date. AFTER_CRASH: what
    they have received meanwhile is unknown.
    """

    HANDED_ON = auto()
    AFTER_CRASH = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionSettings:
    """The configuration of one virtual router's election. Times are seconds.

    `priority` is the configured one, `own` the packed primary address that advertisements are sent from,
    `listen` the least time from the start to the first claim, `hand_over` the longest wait for a successor.
    `informed_within` is how long it preempts no router unless it is `Election.informed`, by all of
    `informers`; 0.0 for no wait.
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
    informed_within: float = 0.0
    informers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedAdvert:
    """One valid advertisement: `interval` in seconds, `sender` the packed source address, `peer` its text."""

    priority: int
    interval: float
    sender: bytes
    peer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SendAdvert:
    """Send one advertisement with this priority; 0 means that this router stops being active."""

    priority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeAddresses:
    """Put the virtual addresses on the interface."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseAddresses:
    """Remove the virtual addresses from the interface."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnounceAddresses:
    """Announce the addresses to switches and neighbours: `repeat` gratuitous ARPs or NAs for each."""

    repeat: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepAnnounced:
    """Announce nothing now: the addresses are where they were. The refresh of announcements begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """A state was entered, and why; `peer` is the address of the router that caused it, or None."""

    state: RouterState
    previous: RouterState
    cause: Cause
    peer: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitBrain:
    """Another active advertised while this router was active. `winner`: this router stays active."""

    peer: str
    priority: int
    winner: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOverEnded:
    """A planned hand-over ended: `successor` is the router that took over, None if none did in time."""

    successor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A stop is complete: the machine is in INITIALIZE, and nothing more will come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnexpectedEvent:
    """An event impossible in this state (words of `election_table`): a bug, and nothing was done."""

    event: str
    state: str


Effect = (
    SendAdvert
    | TakeAddresses
    | ReleaseAddresses
    | AnnounceAddresses
    | KeepAnnounced
    | Entered
    | SplitBrain
    | HandOverEnded
    | Left
    | UnexpectedEvent
)
