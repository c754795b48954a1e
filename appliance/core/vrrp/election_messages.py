"""What an election is told and what it answers: settings, advertisements heard, states, causes, effects.

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
    """How a router goes on as Active that an earlier run of the program held.

    HANDED_ON: that run served until this moment, so switches and neighbours know all that there is to know.
    AFTER_CRASH: nobody knows what they have heard meanwhile.
    """

    HANDED_ON = auto()
    AFTER_CRASH = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionSettings:
    """What the configuration says of one virtual router's election. Times are seconds.

    `priority` is the configured one, `own` the packed primary address that advertisements are sent from,
    `listen` the least time from the start to the first claim, `hand_over` the longest wait for a successor.
    `informed_within` is for how long it preempts nobody unless it is `Election.informed`, 0.0 for not at all.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """One valid advertisement: `interval` in seconds, `sender` the packed source address, `peer` its text."""

    priority: int
    interval: float
    sender: bytes
    peer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SendAdvert:
    """Send one advertisement with this priority; 0 says that this router stops being active."""

    priority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeAddresses:
    """Put the virtual addresses on the interface."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseAddresses:
    """Remove the virtual addresses from the interface."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnounceAddresses:
    """Tell switches and neighbours where the addresses are: `repeat` gratuitous ARPs or NAs for each."""

    repeat: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepAnnounced:
    """Tell nobody now: the addresses are where they were. What refreshes announcements begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """A state was entered, and why; `peer` is the address of the router that caused it, None for none."""

    state: RouterState
    previous: RouterState
    cause: Cause
    peer: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitBrain:
    """Another active was heard while active. `winner` is whether this router stays active."""

    peer: str
    priority: int
    winner: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOverEnded:
    """A planned hand-over ended: `successor` is who took over, None for nobody in time."""

    successor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A stop came to its end: the machine is in INITIALIZE, and nothing more will come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnexpectedEvent:
    """An event came that cannot happen in this state, which is a bug; nothing was done, the state stays.

    `event` and `state` are words of `election_table`.
    """

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
