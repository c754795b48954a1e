"""Generations of proxy workers: which accept, drain, are started again. Pure; `now` is monotonic.

The contract, after tableflip: (1) a generation that was never ready changes nothing when it fails; (2) an old
generation is ordered to drain only when every worker of a newer one has reported that it accepts; (3) from
the first accepting generation on there is one at every moment, and its dead workers are started again, until
`Retire`; (4) a drain ends at its deadline or earlier, never later. Between the commit and the last
acknowledgement two generations accept alongside, which costs nothing: they share their listening sockets.

`states` has a drawing of the states and their transitions, `event_tables` the handler of each event. This
module only looks up the handlers, and keeps the clock.
"""

from typing import TypeVar, assert_never

from appliance.core.rollout import event_tables
from appliance.core.rollout.effects import Effect, Unexpected
from appliance.core.rollout.event_tables import CommandTable, WorkerTable
from appliance.core.rollout.events import (
    Abort,
    Accepted,
    Adopt,
    ApplyLive,
    CommandEvent,
    Commit,
    Event,
    Exited,
    Expired,
    OrphanAnswered,
    Prepare,
    Ready,
    Resume,
    Retire,
    SnapshotApplied,
    SnapshotRefused,
    WorkerEvent,
)
from appliance.core.rollout.generations import Concerned, Generation, Generations, TrackedWorker
from appliance.core.rollout.handlers import worker_steps
from appliance.core.rollout.states import COMMITTED, WorkerId, WorkerState
from appliance.core.rollout.timing import DrainSettings, Timing

_WorkerEvent = TypeVar("_WorkerEvent", bound=WorkerEvent)
_Command = TypeVar("_Command", bound=CommandEvent)


class Rollout(Generations):
    """The state machine: events in, effects out, one deadline for the next tick."""

    def __init__(self, *, drain_settings: DrainSettings, timing: Timing | None = None) -> None:
        super().__init__(drain_settings, timing or Timing())

    @property
    def generations(self) -> dict[int, Generation]:
        """All generations, by number."""
        return self.by_number

    @property
    def deadline(self) -> float | None:
        """When `tick` has something to do, None for never."""
        times = (time for worker in self.workers() for time in (worker.deadline, worker.retry_at))
        return min((time for time in times if time is not None), default=None)

    @property
    def not_applied(self) -> list[TrackedWorker]:
        """The serving workers that have not reported yet that they applied their snapshot."""
        return [each for each in self._serving() if each.applied != each.snapshot]

    @property
    def serving(self) -> list[WorkerId]:
        """The workers that accept, or were ordered to."""
        return [each.id for each in self._serving()]

    def handle(self, event: Event, *, now: float) -> list[Effect]:  # noqa: C901, PLR0911, PLR0912  # one line for each event
        """Handle an event; return what the master must do, in order."""
        match event:
            case Prepare():
                return self._command(event_tables.PREPARE, event, now)
            case Commit():
                return self._command(event_tables.COMMIT, event, now)
            case Abort():
                return self._command(event_tables.ABORT, event, now)
            case ApplyLive():
                return self._command(event_tables.APPLY_LIVE, event, now)
            case Adopt():
                return self._command(event_tables.ADOPT, event, now)
            case Resume():
                return self._command(event_tables.RESUME, event, now)
            case Retire():
                return self._command(event_tables.RETIRE, event, now)
            case Ready():
                return self._worker_event(event_tables.READY, event, now)
            case Accepted():
                return self._worker_event(event_tables.ACCEPTED, event, now)
            case Exited():
                return self._worker_event(event_tables.EXITED, event, now)
            case SnapshotApplied():
                return self._worker_event(event_tables.APPLIED, event, now)
            case SnapshotRefused():
                return self._worker_event(event_tables.REFUSED, event, now)
            case OrphanAnswered():
                return self._worker_event(event_tables.ANSWERED, event, now)
            case Expired():
                return self._worker_event(event_tables.EXPIRED, event, now)
            case _:
                assert_never(event)

    def tick(self, *, now: float) -> list[Effect]:
        """Do what is due: repeat orders after refused snapshots, and end what has taken too long."""
        workers = self.workers()
        again = [each for each in workers if each.retry_at is not None and each.retry_at <= now]
        due = [each.id for each in workers if each.deadline is not None and each.deadline <= now]
        applied = [effect for each in again for effect in worker_steps.order_apply(each, each.snapshot)]
        return applied + [effect for each in due for effect in self.handle(Expired(each), now=now)]

    def _command(self, table: CommandTable[_Command], event: _Command, now: float) -> list[Effect]:
        state = self.pending.state if self.pending else None
        handler = table.get(state)
        if handler is None:
            return [Unexpected(event=type(event).__name__, state=state or "none")]
        return handler(self, event, now)

    def _worker_event(
        self, table: WorkerTable[_WorkerEvent], event: _WorkerEvent, now: float
    ) -> list[Effect]:
        name, place = type(event).__name__, event.worker
        generation, worker = self.by_number.get(place.generation), self.worker(place)
        if generation is None or worker is None:
            known = type(event) in event_tables.FORGOTTEN
            return [] if known else [Unexpected(event=name, state="forgotten", worker=place)]
        handler = table.get((generation.state, worker.state))
        if handler is None:
            state = f"{generation.state}/{worker.state}"
            return [Unexpected(event=name, state=state, worker=place)]
        return handler(Concerned(self, generation, worker, now), event)

    def _serving(self) -> list[TrackedWorker]:
        accepting = (WorkerState.OPENING, WorkerState.ACCEPTING)
        committed = self.in_state(*COMMITTED)
        return [worker for each in committed for worker in each.workers.values() if worker.state in accepting]
