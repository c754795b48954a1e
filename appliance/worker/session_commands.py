"""The commands `sessions` and `kill`: list a worker's connections, and end some of them."""

from collections.abc import Callable
from typing import Final

from appliance.core.balancing.access_lists import NetworkSet
from appliance.model.end_reasons import EndReason
from appliance.wire import sockaddr
from appliance.wire.lines import listed_session
from appliance.wire.lines.control import Answer, ControlError, Question, bad, good
from appliance.wire.lines.listed_session import ListedSession
from appliance.worker.relay.all_sessions import Expiring
from appliance.worker.relay.hello_wait import HelloWait
from appliance.worker.relay.responder import Responder
from appliance.worker.relay.session.session import Session
from appliance.worker.relay.session.session_phases import PHASES
from appliance.worker.worker import Worker

_PIECE: Final = 20
"""Sessions between two checks whether it is the traffic's turn."""


def listing(worker: Worker) -> Answer:
    """Return all connections of a worker. The traffic gets its turns meanwhile: the list may be long."""
    described = []
    for position, each in enumerate(tuple(worker.traffic.live)):
        if position % _PIECE == 0:
            worker.turns.give()
        described.append(listed_session.encoded(_describe(worker, each)))
    return listed_session.of_encoded(described)


def kill(worker: Worker, question: Question) -> Answer:
    """End the sessions that the request's id, server or source (an address or network) names."""
    matches = _matcher(worker, question)
    if matches is None:
        return bad("kill: needs one of id, server, source")
    killed = 0
    for each in tuple(worker.traffic.live):
        worker.turns.give()
        if isinstance(each, (Session, HelloWait)) and each in worker.traffic.live and matches(each):
            each.end(EndReason.KILLED)
            killed += 1
    return good(killed=killed)


def _describe(worker: Worker, each: Expiring) -> ListedSession:
    if isinstance(each, Session):
        return _describe_session(worker, each)
    if isinstance(each, (Responder, HelloWait)):
        return ListedSession(
            id=worker.ids.of(each.number),
            frontend=each.frontend.name,
            client=sockaddr.text(each.address),
            server=None,
            age=round(worker.traffic.now - each.started, 3),
            idle=0.0,
            bytes_in=0,
            bytes_out=0,
            phase="responding" if isinstance(each, Responder) else "inspecting",
        )
    raise TypeError(each)


def _describe_session(worker: Worker, session: Session) -> ListedSession:
    now, client, server = worker.traffic.now, session.client, session.server
    return ListedSession(
        id=worker.ids.of(session.number),
        frontend=session.frontend.name,
        client=sockaddr.text(session.address),
        server=session.member.label if session.member is not None else None,
        age=round(now - session.started, 3),
        idle=round(now - max(client.active_at, server.active_at if server is not None else 0.0), 3),
        bytes_in=client.count,
        bytes_out=server.count if server is not None else 0,
        phase=PHASES[session.phase],
    )


def _matcher(worker: Worker, question: Question) -> Callable[[Session | HelloWait], bool] | None:
    if (wanted := question.optional_text("id")) is not None:
        return lambda session: worker.ids.of(session.number) == wanted
    if (server := question.optional_text("server")) is not None:
        return lambda session: session.member is not None and session.member.label == server
    if (source := question.optional_text("source")) is not None:
        networks = _networks(source)
        return lambda session: sockaddr.packed(session.address) in networks
    return None


def _networks(source: str) -> NetworkSet:
    try:
        return NetworkSet([source])
    except ValueError as error:
        raise ControlError(f"kill: source: {error}") from error
