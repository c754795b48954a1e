"""The input of a rollout: the commands of its master, and what workers do."""

from dataclasses import dataclass

from appliance.core.rollout.states import WorkerId, WorkerState
from appliance.core.rollout.timing import DrainSettings

# Commands of the master


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare:
    """Start a generation of so many `workers`; an earlier one that was not committed is aborted."""

    generation: int
    snapshot: int
    workers: int


@dataclass(frozen=True, slots=True)
class Commit:
    """Have the workers of the ready generation accept."""

    drain_settings: DrainSettings


@dataclass(frozen=True, slots=True)
class Abort:
    """Kill the generation that was not committed; harmless without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyLive:
    """Have the running workers apply a snapshot that needs no new generation."""

    snapshot: int
    drain_settings: DrainSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """A worker that outlived its master.

    `snapshot` is the one that it applied; `state` is READY, ACCEPTING or DRAINING; `drain_within` is seconds,
    for one that drains. A `silent` worker has not answered its new master yet: its state is the one on its
    board.
    """

    index: int
    snapshot: int
    state: WorkerState
    drain_within: float = 0.0
    silent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt:
    """Take over the living workers of a generation of so many `workers`, whose master is gone."""

    generation: int
    workers: int
    orphans: tuple[Orphan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """Continue with the newest accepting generation that was taken over, as that of the accepted snapshot."""

    snapshot: int
    drain_settings: DrainSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Retire:
    """Stop serving: every generation drains within `within` seconds, or earlier if its deadline is."""

    within: float


# What workers do


@dataclass(frozen=True, slots=True)
class Ready:
    """A worker that was started holds its listening sockets, and waits for the order to accept."""

    worker: WorkerId


@dataclass(frozen=True, slots=True)
class Accepted:
    """A worker answered `accept`: it accepts now."""

    worker: WorkerId


@dataclass(frozen=True, slots=True)
class Exited:
    """The process of a worker is gone, for any reason; `detail` is how it ended."""

    worker: WorkerId
    detail: str


@dataclass(frozen=True, slots=True)
class SnapshotApplied:
    """A worker answered `apply`: it uses that snapshot now."""

    worker: WorkerId
    snapshot: int


@dataclass(frozen=True, slots=True)
class SnapshotRefused:
    """A worker answered `apply` with the reason why it cannot; it continues unchanged."""

    worker: WorkerId
    snapshot: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanAnswered:
    """A silent orphan has answered at last, with this state."""

    generation: int
    orphan: Orphan

    @property
    def worker(self) -> WorkerId:
        """The place of the worker."""
        return WorkerId(self.generation, self.orphan.index)


@dataclass(frozen=True, slots=True)
class Expired:
    """The deadline of a worker has come. The machine's own event, from its clock."""

    worker: WorkerId


CommandEvent = Prepare | Commit | Abort | ApplyLive | Adopt | Resume | Retire
WorkerEvent = Ready | Accepted | Exited | SnapshotApplied | SnapshotRefused | OrphanAnswered | Expired
Event = CommandEvent | WorkerEvent
