"""What an election says: the states, why they are entered, and the effects to perform."""

from dataclasses import dataclass
from enum import StrEnum


class RouterState(StrEnum):
    """States of RFC 9568 section 6.3, and FAULT: it may not take part (keepalived's word)."""

    INITIALIZE = "initialize"
    BACKUP = "backup"
    ACTIVE = "active"
    FAULT = "fault"


class Cause(StrEnum):
    """Why a state was entered or an advertisement sent. Log, status and tests share these words."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SendAdvert:
    """Send one advertisement with this priority; 0 is "I leave"."""

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
class Entered:
    """A state was entered, and why; `peer` is the address of the router that caused it, None for none."""

    state: RouterState
    previous: RouterState
    cause: Cause
    peer: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitBrain:
    """Another active was heard while active. `winner` is whether we stay."""

    peer: str
    priority: int
    winner: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOverEnded:
    """A planned hand-over ended: `successor` is who took over, None for nobody in time."""

    successor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A stop came to its end: the machine is in INITIALIZE, nothing more will come."""


Effect = (
    SendAdvert
    | TakeAddresses
    | ReleaseAddresses
    | AnnounceAddresses
    | Entered
    | SplitBrain
    | HandOverEnded
    | Left
)
