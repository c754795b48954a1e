"""What a worker can be told over its control socket, by its master, a later master, or the console."""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import gevent

from appliance import __version__
from appliance.core.balancing.access_lists import NetworkSet
from appliance.model.end_reasons import EndReason
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.model.worker_phases import WorkerPhase
from appliance.net.control.sockets import Call, Handler, WithDescriptors
from appliance.net.data.relay import PHASES, Session
from appliance.net.data.respond import Responder
from appliance.net.data.tcp import OptionsRefused
from appliance.net.data.traffic import Swept
from appliance.net.files import snapshots
from appliance.net.logging.output import STDERR, STDOUT, output
from appliance.wire import sockaddr
from appliance.wire.lines import worker_status
from appliance.wire.lines.control import Answer, ControlError, Question, bad, good
from appliance.wire.lines.worker_status import WorkerListener, WorkerStatus, WorkerStatusPhase

if TYPE_CHECKING:
    from appliance.programs.worker import Worker

_SOON: Final = 2.0  # seconds
_SLICE: Final = 200
"""Sessions described between two turns of the traffic."""

_PHASES: Final[Mapping[WorkerPhase, WorkerStatusPhase]] = {
    WorkerPhase.READY: "ready",
    WorkerPhase.ACCEPTING: "accepting",
    WorkerPhase.DRAINING: "draining",
}


def commands(worker: "Worker") -> Mapping[str, Handler]:
    """Return the handlers of a worker's control socket."""
    return {
        "status": lambda _: good(**worker_status.encode(_status(worker))),
        "adopt": lambda call: _adopt(worker, call),
        "accept": lambda _: _done(worker.accept),
        "drain": lambda call: _drain(worker, call.question),
        "settle": lambda _: _settle(worker),
        "let-go": lambda _: _done(worker.let_go),
        "leave": lambda call: _done(lambda: worker.leave(call.question.number("patience"))),
        "check": lambda call: _take(worker.paths, call.question.integer("snapshot"), worker.check),
        "apply": lambda call: _apply(worker, call.question.integer("snapshot")),
        "listeners": lambda _: _listeners(worker),
        "sessions": lambda _: _sessions(worker),
        "kill": lambda call: _kill(worker, call.question),
        "stop": lambda _: _done(worker.stop),
    }


def _done(action: Callable[[], None]) -> Answer:
    action()
    return good()


def _drain(worker: "Worker", question: Question) -> Answer:
    linger = question.places("linger")
    seconds = question.number("linger_s") if linger else 0.0
    worker.drain(question.number("deadline"), linger=linger, linger_s=seconds)
    return good()


def _settle(worker: "Worker") -> Answer:
    """Answer when it accepts nothing any more that it is to close soon."""
    while worker.phase is WorkerPhase.DRAINING and worker.acceptors and worker.lingers < _SOON:
        gevent.sleep(0.02)
    return good()


def _status(worker: "Worker") -> WorkerStatus:
    orders = worker.orders
    return WorkerStatus(
        program=orders.program,
        generation=orders.generation,
        index=orders.index,
        pid=os.getpid(),
        workers=orders.workers,
        phase=_PHASES[worker.phase],
        snapshot=worker.snapshot.number,
        version=__version__,
        sessions=len(worker.traffic.live),
        started_at=worker.started_at,
        drain_deadline=worker.drain_deadline,
        listeners=_worker_listeners(worker),
    )


def _worker_listeners(worker: "Worker") -> tuple[WorkerListener, ...]:
    if worker.phase is WorkerPhase.DRAINING:
        return ()
    return tuple(
        WorkerListener(frontend=each.frontend, host=each.host, port=each.port)
        for each in worker.orders.listeners
    )


def _adopt(worker: "Worker", call: Call) -> Answer:
    """Write to the new master's output from now on: the old one's pipe may have lost its reader."""
    for descriptor in call.descriptors:
        for place in (STDOUT, STDERR):
            output(place).replace(descriptor)
    worker.leave_at = 0.0
    return good(**worker_status.encode(_status(worker)))


def _apply(worker: "Worker", number: int) -> Answer:
    answer = _take(worker.paths, number, worker.apply)
    worker.publish()
    return answer


def _take(paths: Paths, number: int, take: Callable[[Snapshot], None]) -> Answer:
    try:
        take(snapshots.proposed(paths, number))
    except (ControlError, OptionsRefused) as error:
        return bad(f"snapshot {number}: {error}")
    return good()


def _listeners(worker: "Worker") -> WithDescriptors:
    descriptors = [acceptor.descriptor for acceptor in worker.acceptors]
    listeners = worker_status.encode(_status(worker))["listeners"]
    return WithDescriptors(answer=good(listeners=listeners), descriptors=descriptors)


def _sessions(worker: "Worker") -> Answer:
    described = []
    for position, each in enumerate(tuple(worker.traffic.live)):
        described.append(_describe(worker, each))
        if position % _SLICE == _SLICE - 1:
            gevent.sleep(0)  # traffic goes first
    return good(sessions=described)


def _describe(worker: "Worker", each: Swept) -> dict[str, object]:
    if isinstance(each, Session):
        return _describe_session(worker, each)
    if isinstance(each, Responder):
        return {
            "id": _id(worker, each.number),
            "frontend": each.frontend.name,
            "client": sockaddr.text(each.address),
            "server": None,
            "age": round(worker.traffic.now - each.started, 3),
            "idle": 0.0,
            "bytes_in": 0,
            "bytes_out": 0,
            "phase": "responding",
        }
    raise TypeError(each)


def _describe_session(worker: "Worker", session: Session) -> dict[str, object]:
    now, client, server = worker.traffic.now, session.client, session.server
    return {
        "id": _id(worker, session.number),
        "frontend": session.frontend.name,
        "client": sockaddr.text(session.address),
        "server": session.member.label if session.member is not None else None,
        "age": round(now - session.started, 3),
        "idle": round(now - max(client.active, server.active if server is not None else 0.0), 3),
        "bytes_in": client.count,
        "bytes_out": server.count if server is not None else 0,
        "phase": PHASES[session.phase],
    }


def _id(worker: "Worker", number: int) -> str:
    orders = worker.orders
    return f"{orders.program}-{orders.generation}-{orders.index}-{number}"


def _kill(worker: "Worker", question: Question) -> Answer:
    matches = _matcher(worker, question)
    if matches is None:
        return bad("kill: needs one of id, server, source")
    chosen = [each for each in worker.traffic.live if isinstance(each, Session) and matches(each)]
    for session in chosen:
        session.end(EndReason.KILLED)
    return good(killed=len(chosen))


def _networks(source: str) -> NetworkSet:
    try:
        return NetworkSet([source])
    except ValueError as error:
        raise ControlError(f"kill: source: {error}") from error


def _matcher(worker: "Worker", question: Question) -> Callable[[Session], bool] | None:
    if (wanted := question.optional_text("id")) is not None:
        return lambda session: _id(worker, session.number) == wanted
    if (server := question.optional_text("server")) is not None:
        return lambda session: session.member is not None and session.member.label == server
    if (source := question.optional_text("source")) is not None:
        networks = _networks(source)
        return lambda session: sockaddr.packed(session.address) in networks
    return None
