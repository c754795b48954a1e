"""Gives the rollout its events and the time, and executes its orders: effects are performed only here."""

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import assert_never

import gevent
from gevent.event import AsyncResult, Event

from appliance.core.balancing import accept_queues
from appliance.core.rollout import effects
from appliance.core.rollout.events import Event as RolloutEvent
from appliance.core.rollout.states import WorkerId, WorkerState
from appliance.core.rollout.timing import NO_DEADLINE
from appliance.model.operator_events import EventKind, OperatorEvent
from appliance.proxy.group_state import GroupState
from appliance.proxy.moved_binds import MovedBinds
from appliance.proxy.nursery import Nursery
from appliance.proxy.worker_processes import WorkerProcesses, WorkerStart
from appliance.wire.lines.control import Question
from appliance.wire.lines.worker_arguments import InheritedListener


@dataclass(slots=True, eq=False)
class GenerationOutcome:
    """The outcome of a generation: the reason why it failed or None, and whether it accepts."""

    ready: "AsyncResult[str | None]" = field(default_factory=AsyncResult)
    accepting: Event = field(default_factory=Event)


class RolloutDriver:
    """The rollout of one group, its worker processes and its clock.

    `outcomes` are those of the generations that are waited for; `performed` is set after each event.
    """

    def __init__(self, state: GroupState, *, module: Sequence[str], nursery: Nursery | None) -> None:
        self._state = state
        self._clock = Event()
        self.workers = WorkerProcesses(
            state.paths,
            state.program,
            module=module,
            nursery=nursery,
            report=self.handle,
            fault=self._fault,
            log=state.log,
        )
        self.moved_binds = MovedBinds(state, self.workers)
        self.outcomes: dict[int, GenerationOutcome] = {}
        self.performed = Event()
        gevent.spawn(self._tick).link_exception(self._fault)

    def handle(self, event: RolloutEvent) -> None:
        """Give the rollout an event and perform its effects; never gives way to another greenlet.

        So two events are never handled at the same time, and effects are performed in their order.
        """
        self._perform(self._state.rollout.handle(event, now=time.monotonic()))

    def _perform(self, orders: Sequence[effects.Effect]) -> None:
        for effect in orders:
            self._perform_one(effect)
        if any(isinstance(each, effects.GenerationAccepting) for each in orders):
            self._move_draining(but={each.worker for each in orders if isinstance(each, effects.Drain)})
        self._clock.set()
        self._state.changed.set()
        self._forget_failure()
        self.performed.set()

    def _forget_failure(self) -> None:
        """Forget a refusal once it has been corrected: the worker got the snapshot again, or was replaced."""
        state = self._state
        if state.failure and state.current and not state.rollout.not_applied:
            state.failure = None

    def _tick(self) -> None:
        rollout = self._state.rollout
        while True:
            deadline = rollout.deadline
            self._clock.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
            self._clock.clear()
            if (deadline := rollout.deadline) is not None and deadline <= time.monotonic():
                self._perform(rollout.tick(now=time.monotonic()))

    def _fault(self, greenlet: gevent.Greenlet) -> None:
        """End the program, after a bug ended a part of it: its successor takes over what serves."""
        self._state.log.error("internal-error", exc_info=greenlet.exception)
        self._state.broken = True
        self._state.changed.set()

    def _perform_one(self, effect: effects.Effect) -> None:  # noqa: C901, PLR0912  # one case for each effect
        log = self._state.log
        match effect:
            case effects.Spawn(worker=worker, snapshot=snapshot, workers=workers):
                self.workers.spawn(worker, self._start_of(worker, snapshot, workers))
            case effects.Accept(worker):
                self.workers.accept(worker)
            case effects.Apply(worker, snapshot):
                self.workers.apply(worker, snapshot)
            case effects.Drain(worker, within):
                self.workers.order(worker, self.moved_binds.drain_order(worker, within))
                self._move_sessions(worker)
            case effects.Kill(worker):
                self.workers.kill(worker)
            case effects.GenerationReady(generation):
                self.outcomes[generation].ready.set(None)
                log.info("generation-ready", generation=generation)
            case effects.GenerationFailed(generation, reason):
                self.outcomes.pop(generation).ready.set(reason)
                self._state.frontends.pop(generation)
                log.error("generation-failed", generation=generation, reason=reason)
            case effects.GenerationAccepting(generation):
                log.info("generation-accepting", generation=generation)
                if outcome := self.outcomes.pop(generation, None):  # none for one that was adopted
                    outcome.accepting.set()
                self.moved_binds.close_unused()
            case effects.GenerationDraining(generation, within):
                log.info("generation-draining", generation=generation, seconds=_bounded(within))
            case effects.GenerationCut(generation):
                limit = self._state.rollout.drain_settings.max_draining
                log.warning("generation-cut", generation=generation, max_draining=limit)
            case effects.GenerationGone(generation):
                self._state.frontends.pop(generation, None)
                log.info("generation-gone", generation=generation)
            case effects.WorkerDied(worker, detail, delay):
                log.error("worker-died", **_place(worker), reason=detail, again_in=round(delay, 3))
                self._state.publish(_died(worker, self._state.program, detail))
            case effects.WorkerStuck(worker, worker_state):
                log.error("worker-stuck", **_place(worker), phase=worker_state)
            case effects.WorkerRefused(worker=worker, reason=reason, delay=delay):
                log.error("worker-refused", **_place(worker), reason=reason, again_in=delay)
            case effects.Unexpected(event=event, state=where, worker=unexpected):
                place = _place(unexpected) if unexpected else {}
                log.error("rollout-event-unexpected", **place, kind=event, state=where)
            case _:
                assert_never(effect)

    def _move_draining(self, *, but: Collection[WorkerId]) -> None:
        """Order draining workers to move their remaining sessions to the newest generation."""
        for generation in self._state.rollout.generations.values():
            for worker in generation.workers.values():
                if worker.state is WorkerState.DRAINING and worker.id not in but:
                    self._move_sessions(worker.id)

    def _move_sessions(self, worker: WorkerId) -> None:
        """Have a draining worker move its open sessions, if a newer generation accepts."""
        state, newest = self._state, self._state.rollout.accepting
        wanted = state.current is not None and state.current.reload.sessions == "move"
        if wanted and newest is not None and newest.number > worker.generation and not state.stopping:
            accepting = [
                each.id.index for each in newest.workers.values() if each.state is WorkerState.ACCEPTING
            ]
            values = {"generation": newest.number, "workers": accepting}
            self.workers.order(worker, Question(command="move", values=values))

    def _start_of(self, worker: WorkerId, snapshot: int, workers: int) -> WorkerStart:
        state = self._state
        return WorkerStart(
            group=state.group,
            workers=workers,
            snapshot=snapshot,
            listeners=tuple(self._listeners_of(worker, workers)),
        )

    def _listeners_of(self, worker: WorkerId, workers: int) -> Iterator[InheritedListener]:
        """Yield the accept queues to which a worker has a claim."""
        state = self._state
        held = set(state.listeners)
        opening = state.pending is not None and state.pending.generation == worker.generation
        for frontend, address in state.frontends[worker.generation]:
            queues = state.listeners.descriptors(address, opening=opening) if address in held else ()
            for number, descriptor in enumerate(queues):
                claim = accept_queues.claim(
                    queue=number, queues=len(queues), worker=worker.index, workers=workers
                )
                if claim is not None:
                    yield InheritedListener(
                        frontend=frontend,
                        host=address.host,
                        port=address.port,
                        fd=descriptor,
                        claim=claim,
                    )


def _place(worker: WorkerId) -> dict[str, int]:
    return {"generation": worker.generation, "worker": worker.index}


def _bounded(seconds: float) -> float | None:
    return None if seconds >= NO_DEADLINE else round(seconds, 3)


def _died(worker: WorkerId, program: str, detail: str) -> OperatorEvent:
    subject = f"{program} worker {worker.generation}.{worker.index}"
    return OperatorEvent(when=time.time(), kind=EventKind.WORKER_DIED, subject=subject, detail=detail)
