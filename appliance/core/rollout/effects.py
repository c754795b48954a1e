"""The orders of a rollout to its master, in the order to execute them, and its reports."""

from dataclasses import dataclass

from appliance.core.rollout.states import WorkerId, WorkerState

# Orders to workers


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawn:
    """Start the process of a worker with a snapshot; its generation has so many `workers`."""

    worker: WorkerId
    snapshot: int
    workers: int


@dataclass(frozen=True, slots=True)
class Accept:
    """Order a worker to accept; the event Accepted follows."""

    worker: WorkerId


@dataclass(frozen=True, slots=True)
class Apply:
    """Order a worker to apply a snapshot; the event SnapshotApplied or SnapshotRefused follows."""

    worker: WorkerId
    snapshot: int


@dataclass(frozen=True, slots=True)
class Drain:
    """Order a worker to stop accepting and to end; `within` is seconds."""

    worker: WorkerId
    within: float


@dataclass(frozen=True, slots=True)
class Kill:
    """Send SIGKILL to a worker."""

    worker: WorkerId


# Reports of generations


@dataclass(frozen=True, slots=True)
class GenerationReady:
    """Every worker of a generation is ready."""

    generation: int


@dataclass(frozen=True, slots=True)
class GenerationFailed:
    """A generation could not start; nothing else has changed."""

    generation: int
    reason: str


@dataclass(frozen=True, slots=True)
class GenerationAccepting:
    """Every worker of a generation accepts."""

    generation: int


@dataclass(frozen=True, slots=True)
class GenerationDraining:
    """A generation stops accepting and ends; `within` is seconds."""

    generation: int
    within: float


@dataclass(frozen=True, slots=True)
class GenerationCut:
    """A draining generation ends before its time, because more drain than the configuration allows."""

    generation: int


@dataclass(frozen=True, slots=True)
class GenerationGone:
    """The last worker of a draining generation has ended."""

    generation: int


# Reports of workers


@dataclass(frozen=True, slots=True)
class WorkerDied:
    """A worker that should live is gone; another takes its place in `delay` seconds."""

    worker: WorkerId
    detail: str
    delay: float


@dataclass(frozen=True, slots=True)
class WorkerStuck:
    """A worker did not execute its order in time, and is killed; `state` is where it stuck."""

    worker: WorkerId
    state: WorkerState


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRefused:
    """A worker did not apply a snapshot. The order repeats in `delay` seconds; None: another replaces it."""

    worker: WorkerId
    reason: str
    delay: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unexpected:
    """An event that cannot come in this state; nothing was done. A bug, of ours or of a worker.

    `event` is the name of its class. `state` is that of the generation and of the worker, or for a command
    that of the generation that was not committed.
    """

    event: str
    state: str
    worker: WorkerId | None = None


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
    | Unexpected
)
