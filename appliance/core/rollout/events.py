"""What a rollout is told and what it orders: the events and effects of `core.rollout.rollout`."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

NO_DEADLINE: Final = 10 * 365 * 86400.0
"""Seconds that a drain lasts which is to end with its last session, whenever that is: a soft stop's."""


class GenerationState(StrEnum):
    """Where a generation is; everything after READY is committed."""

    STARTING = "starting"
    READY = "ready"
    OPENING = "opening"
    ACCEPTING = "accepting"
    DRAINING = "draining"


class WorkerState(StrEnum):
    """Where one worker is. WAITING has no process yet, ENDING was killed and is not gone yet."""

    WAITING = "waiting"
    STARTING = "starting"
    READY = "ready"
    OPENING = "opening"
    ACCEPTING = "accepting"
    DRAINING = "draining"
    ENDING = "ending"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainSettings:
    """What the accepted snapshot says about draining: seconds, and generations at a time."""

    drain: float
    max_draining: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Patience with workers, seconds. A worker that accepted for `stable` is replaced without delay.

    One that is silent since the take-over is ended after `silence`, and a refused snapshot is repeated
    `backoff_first` and so on later.

    `startup` is for one that hangs, since one that fails says so at once: a machine that is merely slow, at
    its first start with cold disks, must not run into it.
    """

    startup: float = 90.0
    accept: float = 15.0
    kill_grace: float = 5.0
    backoff_first: float = 0.1
    backoff_longest: float = 5.0
    stable: float = 10.0
    silence: float = 30.0


@dataclass(frozen=True, slots=True)
class WorkerId:
    """One place in a generation; a replacement takes the place of the dead."""

    generation: int
    index: int


# Events


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare:
    """Start a generation beside what is there; an earlier one that was not committed is given up."""

    generation: int
    snapshot: int
    workers: int


@dataclass(frozen=True, slots=True)
class Ready:
    """A worker could accept now, and waits to be told."""

    worker: WorkerId


@dataclass(frozen=True, slots=True)
class Accepted:
    """A worker said that it accepts."""

    worker: WorkerId


@dataclass(frozen=True, slots=True)
class Exited:
    """The process of a worker is gone, whatever the cause."""

    worker: WorkerId
    detail: str


@dataclass(frozen=True, slots=True)
class Commit:
    """The ready generation becomes the accepting one."""

    terms: DrainSettings


@dataclass(frozen=True, slots=True)
class Abort:
    """Give up the generation that was not committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """A snapshot that needs no new generation."""

    snapshot: int
    terms: DrainSettings


@dataclass(frozen=True, slots=True)
class SnapshotApplied:
    """A worker said that it obeys a snapshot."""

    worker: WorkerId
    snapshot: int


@dataclass(frozen=True, slots=True)
class SnapshotRefused:
    """A worker said that it cannot obey a snapshot, and why."""

    worker: WorkerId
    snapshot: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """A worker that outlived its master, with the snapshot that it obeys.

    `phase` is READY, ACCEPTING or DRAINING; `drain_within` is seconds, for one that drains. One that is
    `silent` has not answered its new master yet, so that its phase is what its board says.
    """

    index: int
    snapshot: int
    phase: WorkerState
    drain_within: float = 0.0
    silent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt:
    """Living workers of a generation whose master is gone are ours now; it had so many `workers`."""

    generation: int
    workers: int
    orphans: tuple[Orphan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An orphan that was silent has answered: this is what it says of itself."""

    generation: int
    orphan: Orphan


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """The adopted generation that accepts is the accepted configuration's: it goes on as that."""

    snapshot: int
    terms: DrainSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Retire:
    """The program ends: everything drains within so many seconds; what has less time left keeps that."""

    within: float


Event = (
    Prepare
    | Ready
    | Accepted
    | Exited
    | Commit
    | Abort
    | Live
    | SnapshotApplied
    | SnapshotRefused
    | Adopt
    | Answered
    | Resume
    | Retire
)


# Effects, to be carried out in order


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawn:
    """Start the process of a worker."""

    worker: WorkerId
    snapshot: int
    workers: int


@dataclass(frozen=True, slots=True)
class Accept:
    """Tell a worker to accept; its answer is the event Accepted."""

    worker: WorkerId


@dataclass(frozen=True, slots=True)
class Apply:
    """Tell a worker to obey a snapshot; its answer is the event Applied or Refused."""

    worker: WorkerId
    snapshot: int


@dataclass(frozen=True, slots=True)
class Drain:
    """Tell a worker to stop accepting and to end within so many seconds."""

    worker: WorkerId
    within: float


@dataclass(frozen=True, slots=True)
class Kill:
    """End a process at once."""

    worker: WorkerId


@dataclass(frozen=True, slots=True)
class GenerationReady:
    """Every worker of a generation waits to be told to accept."""

    generation: int


@dataclass(frozen=True, slots=True)
class GenerationFailed:
    """A generation could not start; nothing else has changed."""

    generation: int
    reason: str


@dataclass(frozen=True, slots=True)
class GenerationAccepting:
    """Every worker of a generation has said that it accepts."""

    generation: int


@dataclass(frozen=True, slots=True)
class GenerationDraining:
    """A generation stops accepting and ends within so many seconds."""

    generation: int
    within: float


@dataclass(frozen=True, slots=True)
class GenerationCut:
    """A draining generation ends before its time: too many drain."""

    generation: int


@dataclass(frozen=True, slots=True)
class GenerationGone:
    """The last worker of a draining generation has ended."""

    generation: int


@dataclass(frozen=True, slots=True)
class WorkerDied:
    """A worker that should live is gone; another takes its place in `delay` seconds."""

    worker: WorkerId
    detail: str
    delay: float


@dataclass(frozen=True, slots=True)
class WorkerStuck:
    """A worker did not do in time what it was told, and is killed."""

    worker: WorkerId
    phase: WorkerState


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRefused:
    """A worker did not take a snapshot. It is told again after `delay` seconds; None: another replaces it."""

    worker: WorkerId
    reason: str
    delay: float | None


Effect = (
    Spawn
    | Accept
    | Apply
    | Drain
    | Kill
    | GenerationReady
    | GenerationFailed
    | GenerationAccepting
    | GenerationDraining
    | GenerationCut
    | GenerationGone
    | WorkerDied
    | WorkerStuck
    | WorkerRefused
)
