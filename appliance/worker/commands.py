"""The commands of a worker's control socket: from its master, from a later master, or from the console."""

import os
from collections.abc import Callable, Mapping
from typing import Final

import gevent

from appliance import __version__
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.model.worker_phases import WorkerPhase
from appliance.net.control.control_server import Call, Handler, WithDescriptors
from appliance.net.files import snapshots
from appliance.net.logging.output import STDERR, STDOUT, output
from appliance.wire.lines import status_answer
from appliance.wire.lines.control import Answer, ControlError, Question, bad, good
from appliance.wire.lines.succession import INSTANCE
from appliance.wire.lines.worker_status import WorkerListener, WorkerStatus, WorkerStatusPhase
from appliance.worker import session_commands
from appliance.worker.arriving_sessions import ArrivingSessions
from appliance.worker.relay.tcp import OptionsRefused
from appliance.worker.worker import Worker

_SOON: Final = 2.0
"""Most seconds of late accepting that `settle` waits for."""

_PHASES: Final[Mapping[WorkerPhase, WorkerStatusPhase]] = {
    WorkerPhase.READY: "ready",
    WorkerPhase.ACCEPTING: "accepting",
    WorkerPhase.DRAINING: "draining",
}


def commands(worker: Worker) -> Mapping[str, Handler]:
    """Return the handlers of a worker's control socket."""
    return {
        "status": lambda _: good(**status_answer.encode(_status(worker))),
        "adopt": lambda call: _adopt(worker, call),
        "accept": lambda _: _done(worker.accept),
        "drain": lambda call: _drain(worker, call.question),
        "move": lambda call: _move(worker, call.question),
        **ArrivingSessions(worker).handlers(),
        "emigrate": worker.emigrating.emigrate,
        "settle": lambda _: _settle(worker),
        "let-go": lambda call: _let_go(worker, call.question),
        "leave": lambda call: _done(lambda: worker.leave(call.question.number("patience"))),
        "check": lambda call: _with_snapshot(worker.paths, call.question.integer("snapshot"), worker.check),
        "apply": lambda call: _apply(worker, call.question.integer("snapshot")),
        "listeners": lambda _: _listeners(worker),
        "sessions": lambda _: session_commands.listing(worker),
        "kill": lambda call: session_commands.kill(worker, call.question),
        "stop": lambda _: _done(worker.stop),
    }


def _done(action: Callable[[], None]) -> Answer:
    action()
    return good()


def _drain(worker: Worker, question: Question) -> Answer:
    late = question.places("linger")
    seconds = question.number("linger_s") if late else 0.0
    worker.drain(question.number("deadline"), late=late, late_s=seconds)
    return good()


def _let_go(worker: Worker, question: Question) -> Answer:
    """Accept for a moment more on the listeners that close; masters of earlier releases name none."""
    worker.accept_late(question.number("linger_s") if "linger_s" in question.values else 0.0)
    return good()


def _move(worker: Worker, question: Question) -> Answer:
    """Move its open sessions to a newer generation."""
    workers = question.integers("workers")
    if worker.phase is not WorkerPhase.DRAINING or not workers:
        return bad("move: only a worker that drains moves its sessions, and to one worker at least")
    worker.departing.aim(question.integer("generation"), workers)
    return good()


def _settle(worker: Worker) -> Answer:
    """Answer once the listeners that it still accepts on for a moment are closed."""
    while (
        worker.phase is WorkerPhase.DRAINING and worker.acceptors.descriptors and worker.accepts_late < _SOON
    ):
        gevent.sleep(0.02)
    return good()


def _status(worker: Worker) -> WorkerStatus:
    arguments = worker.arguments
    return WorkerStatus(
        program=arguments.program,
        generation=arguments.generation,
        index=arguments.index,
        pid=os.getpid(),
        workers=arguments.workers,
        phase=_PHASES[worker.phase],
        snapshot=worker.snapshot.number,
        version=__version__,
        instance=os.environ.get(INSTANCE, ""),
        sessions=len(worker.traffic.live),
        started_at=worker.started_at,
        drain_deadline=worker.draining.deadline,
        listeners=_worker_listeners(worker),
    )


def _worker_listeners(worker: Worker) -> tuple[WorkerListener, ...]:
    if worker.phase is WorkerPhase.DRAINING:
        return ()
    places = ((each.frontend, each.host, each.port) for each in worker.arguments.listeners)
    return tuple(
        WorkerListener(frontend=frontend, host=host, port=port)
        for frontend, host, port in dict.fromkeys(places)
    )


def _adopt(worker: Worker, call: Call) -> Answer:
    """Write to the new master's output from now on: the old one's pipe may have no reader.

    A full pipe without a reader would stop the worker at its next log line.
    """
    for descriptor in call.descriptors:
        for place in (STDOUT, STDERR):
            output(place).replace(descriptor)
    worker.draining.stay()
    return good(**status_answer.encode(_status(worker)))


def _apply(worker: Worker, number: int) -> Answer:
    answer = _with_snapshot(worker.paths, number, worker.apply)
    worker.publish()
    return answer


def _with_snapshot(paths: Paths, number: int, action: Callable[[Snapshot], None]) -> Answer:
    try:
        action(snapshots.proposed(paths, number))
    except (ControlError, OptionsRefused) as error:
        return bad(f"snapshot {number}: {error}")
    return good()


def _listeners(worker: Worker) -> WithDescriptors:
    listeners = status_answer.encode(_status(worker))["listeners"]
    return WithDescriptors(answer=good(listeners=listeners), descriptors=worker.acceptors.descriptors)
