"""The generations of a group and their workers: the state of the rollout, which its handlers change."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from appliance.core.rollout.states import (
    COMMITTED,
    GENERATION_MOVES,
    WORKER_MOVES,
    GenerationMove,
    GenerationState,
    WorkerId,
    WorkerMove,
    WorkerState,
)
from appliance.core.rollout.timing import DrainSettings, Timing


@dataclass(slots=True, eq=False)
class TrackedWorker:
    """One worker; what happens at `deadline` depends on `state`. Times are monotonic seconds.

    `snapshot` is the one that it was ordered to apply, `applied` the one that it reported as applied.
    `refusal` is why it refused, and `retry_at` when it is ordered again. A worker that is replaced drains
    when its `successor`, the index of another place, accepts. `failures` are deaths in a row.
    """

    id: WorkerId
    state: WorkerState
    deadline: float | None = None
    snapshot: int = 0
    applied: int = 0
    refusals: int = 0
    refusal: str = ""
    retry_at: float | None = None
    successor: int | None = None
    failures: int = 0
    accepting_since: float | None = None

    def move(self, move: WorkerMove, *, deadline: float | None = None) -> None:
        """Enter the next state, which ends at `deadline`."""
        self.state = WORKER_MOVES[self.state, move]
        self.deadline = deadline

    @property
    def has_process(self) -> bool:
        """Whether there is a process that was not killed yet."""
        return self.state not in (WorkerState.WAITING, WorkerState.ENDING)


@dataclass(slots=True, eq=False)
class Generation:
    """One generation: workers started together, for one snapshot, with the same listening sockets.

    `size` is the intended number of workers. A `cut` one was ordered to end before its time.
    """

    number: int
    snapshot: int
    size: int
    state: GenerationState
    workers: dict[int, TrackedWorker] = field(default_factory=dict)
    drain_deadline: float | None = None
    cut: bool = False

    def move(self, move: GenerationMove) -> None:
        """Enter the next state."""
        self.state = GENERATION_MOVES[self.state, move]

    def all_in(self, state: WorkerState) -> bool:
        """Return whether every worker is in a state; one that another has replaced does not count."""
        return all(each.state is state for each in self._staying())

    def empty_places(self) -> list[int]:
        """Return the places, below `size`, that no worker has or will have."""
        taken = {each.id.index % self.size for each in self._staying()}
        return [place for place in range(self.size) if place not in taken]

    def free_index(self, index: int) -> int:
        """Return an unused index that stands for the same share of limits (`worker_shares`)."""
        while index in self.workers:
            index += self.size
        return index

    def _staying(self) -> Iterator[TrackedWorker]:
        return (each for each in self.workers.values() if each.state is not WorkerState.DRAINING)


class Generations:
    """All generations of one group by number; `drain_settings` are those of the snapshot committed last."""

    def __init__(self, drain_settings: DrainSettings, timing: Timing) -> None:
        self.by_number: dict[int, Generation] = {}
        self.drain_settings = drain_settings
        self.timing = timing

    @property
    def pending(self) -> Generation | None:
        """The generation that was prepared and neither committed nor aborted."""
        return next(iter(self.in_state(GenerationState.STARTING, GenerationState.READY)), None)

    @property
    def accepting(self) -> Generation | None:
        """The newest generation of which every worker accepts, or did before some of them died."""
        return max(self.in_state(GenerationState.ACCEPTING), key=_number, default=None)

    def in_state(self, *states: GenerationState) -> list[Generation]:
        """Return the generations in these states, the oldest first."""
        return sorted((each for each in self.by_number.values() if each.state in states), key=_number)

    def committed_before(self, generation: Generation) -> list[Generation]:
        """Return the older generations that accept or were ordered to, the oldest first."""
        return [each for each in self.in_state(*COMMITTED) if each.number < generation.number]

    def worker(self, worker: WorkerId) -> TrackedWorker | None:
        """Return the worker at a place, None if the place is no longer kept."""
        generation = self.by_number.get(worker.generation)
        return generation.workers.get(worker.index) if generation else None

    def workers(self) -> list[TrackedWorker]:
        """Return all workers of all generations."""
        return [worker for each in self.by_number.values() for worker in each.workers.values()]


def _number(generation: Generation) -> int:
    return generation.number


@dataclass(frozen=True, slots=True)
class Concerned:
    """Whom a worker's event concerns at `now`: the worker, its generation, and all of them."""

    generations: Generations
    generation: Generation
    worker: TrackedWorker
    now: float
