"""What happened to a thing before: sentences from the kept events, and since when its state holds.

Boards and programs know the present and the last change. The kept events cover the hours before, over
restarts, and while the program that reported them is gone.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, assert_never

from appliance.core.status.quantities import duration
from appliance.core.vrrp.election_messages import Cause
from appliance.core.why.explanation import Evidence, Explanation, Kind
from appliance.core.why.subjects import Subject
from appliance.model.messages.quoting import printable
from appliance.model.operator_events import EventKind, OperatorEvent
from appliance.wire.lines.announce_status import AnnounceStatus
from appliance.wire.lines.vrrp_status import VrrpStatus

CAUSES: Final[Mapping[str, str]] = {
    Cause.STARTED: "it was started",
    Cause.RESUMED: "it was started again and had been active before",
    Cause.ACTIVE_DOWN: "advertisements of the active router stopped arriving",
    Cause.ACTIVE_LEFT: "the active router has left",
    Cause.PREEMPTED: "it has taken over from a router of lower priority",
    Cause.HIGHER_PRIORITY: "a router of higher priority advertises",
    Cause.HIGHER_ADDRESS: "a router of the same priority and a higher address advertises",
    Cause.HANDED_OVER: "it was handed over",
    Cause.FAULT: "a fault",
    Cause.RECOVERED: "a fault has ended",
    Cause.GROUP: "its sync group has moved",
    Cause.STOPPED: "it was stopped",
}

REMEMBERED: Final = 86400.0
"""How many seconds back events count."""

_HOUR: Final = 3600.0
_TOLD: Final = 4  # of several events of one kind the newest are listed one by one
_SAME: Final = 2.0  # seconds within which an event and a program's report are the same change

_STATES: Final[Mapping[EventKind, str]] = {
    EventKind.POOL_EMPTY: "empty",
    EventKind.POOL_SERVES: "serving",
    EventKind.FRONTEND_FULL: "full",
    EventKind.FRONTEND_HAS_ROOM: "serving",
}
"""The states of some kinds of events; others have theirs in `after`."""


_OF_SESSIONS: Final[Mapping[EventKind, str]] = {
    EventKind.SESSIONS_MOVED: "Its sessions moved to another node",
    EventKind.SESSIONS_LEFT: "Sessions of it stayed on this node",
    EventKind.SESSIONS_LOST: "Sessions of it ended as they moved",
}
"""What happened to sessions of a virtual IP."""

_BEGINNINGS: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind.SERVER: ("server-",),
    Kind.POOL: ("pool-", "last-server"),
    Kind.FRONTEND: ("frontend-",),
    Kind.VIRTUAL_IP: ("vip-", "split-brain"),
    Kind.SHARED_IP: ("ip-", "last-path"),
    Kind.NEIGHBOR: ("bgp-", "bfd-"),
}
"""How the kinds of events about such a thing begin."""


def remembered(explanation: Explanation, subject: Subject, evidence: Evidence) -> Explanation:
    """Return the explanation with its history, and since when its state holds."""
    events = [each for each in evidence.events if evidence.now - each.when <= REMEMBERED]
    about = [each for each in events if _is_about(each, subject)]
    return replace(
        explanation,
        since=_since(explanation, about),
        history=tuple(_sentences(explanation, subject, evidence, about, events)),
    )


def _is_about(event: OperatorEvent, subject: Subject) -> bool:
    """Return whether an event is about a thing: things of several kinds may share a name."""
    begins = event.kind.startswith(_BEGINNINGS[subject.kind])
    of_group = subject.group is None or event.program == _program(subject)
    return begins and of_group and event.subject == subject.label


def _since(explanation: Explanation, about: Sequence[OperatorEvent]) -> float | None:
    """Return since when the state holds: what the programs report, or the event that began it.

    A virtual IP that `vrrp` resumed after a restart has been held for longer than that program knows, and so
    has a shared IP that `announce` found served.
    """
    begun: float | None = None
    for each in reversed(about):
        if (_STATES.get(each.kind) or each.after) != explanation.state:
            break
        begun = each.when
        if each.cause != Cause.RESUMED:
            break
    known = explanation.since
    if known is None or begun is None:
        return known or begun
    resumed = about[-1].cause == Cause.RESUMED or explanation.kind is Kind.SHARED_IP
    return min(begun, known) if resumed else known


def _sentences(
    explanation: Explanation,
    subject: Subject,
    evidence: Evidence,
    about: Sequence[OperatorEvent],
    events: Sequence[OperatorEvent],
) -> Iterator[str]:
    match subject.kind:
        case Kind.SERVER:
            yield from _of_server(about, evidence)
        case Kind.POOL:
            yield from _times(about, EventKind.POOL_EMPTY, "It was empty", evidence, _cause_and_detail)
            yield from _times(
                about, EventKind.LAST_SERVER, "One server was left", evidence, _cause_and_detail
            )
        case Kind.FRONTEND:
            yield from _times(about, EventKind.FRONTEND_FULL, "It was full", evidence, _detail)
            workers = [each for each in events if each.subject.startswith(f"{_program(subject)} worker ")]
            yield from _times(workers, EventKind.WORKER_DIED, "A worker of it died", evidence, _detail)
        case Kind.VIRTUAL_IP:
            live = evidence.observations.answer(VrrpStatus) is not None
            yield from _of_states(explanation, about, evidence, live=live)
            yield from _times(about, EventKind.SPLIT_BRAIN, "Two were active", evidence, _cause_and_detail)
            yield from _of_sessions(subject, events, evidence)
        case Kind.SHARED_IP:
            live = evidence.observations.answer(AnnounceStatus) is not None
            states = [each for each in about if each.kind is not EventKind.LAST_PATH]
            yield from _of_states(explanation, states, evidence, live=live)
            yield from _times(about, EventKind.LAST_PATH, "No other node had it", evidence, _detail)
        case Kind.NEIGHBOR:
            yield from _times(about, EventKind.BGP_SESSION_DOWN, "Its session went down", evidence, _detail)
            yield from _times(about, EventKind.BFD_DOWN, "Its session was without BFD", evidence, _detail)
        case _:
            assert_never(subject.kind)


def _program(subject: Subject) -> str:
    return f"proxy-{subject.group}"


def _of_server(about: Sequence[OperatorEvent], evidence: Evidence) -> Iterator[str]:
    yield from _times(about, EventKind.SERVER_DOWN, "It went down", evidence, _cause_and_detail)
    words = {
        EventKind.SERVER_DRAIN: "put it into drain",
        EventKind.SERVER_MAINT: "put it into maint",
        EventKind.SERVER_READY: "made it ready again",
    }
    said = [each for each in about if each.kind in words]
    for each in said[-1:]:
        yield f"An operator {words[each.kind]} at {evidence.moment(each.when)}."


def _of_sessions(subject: Subject, events: Sequence[OperatorEvent], evidence: Evidence) -> Iterator[str]:
    """Yield what became of the sessions of a virtual IP's addresses when these left this node."""
    addresses = {
        each.partition("/")[0]
        for router in evidence.snapshot.virtual_routers
        if router.name == subject.name
        for each in router.addresses
    }
    about = [each for each in events if each.subject in addresses]
    for kind, what in _OF_SESSIONS.items():
        yield from _times(about, kind, what, evidence, _detail)


def _of_states(
    explanation: Explanation, about: Sequence[OperatorEvent], evidence: Evidence, *, live: bool
) -> Iterator[str]:
    """Yield the changes of state; if the program is `live`, the explanation has the last one already."""
    moves = [each for each in about if each.after and each.before != each.after]
    yield from _often(moves, "It changed its state", evidence)
    earlier = moves[:-1] if live and moves and _is_present(moves[-1], explanation) else moves
    for each in reversed(earlier[-_TOLD:]):
        cause = CAUSES.get(each.cause, each.cause) or "the cause is unknown"
        yield f"It became {each.after} at {evidence.moment(each.when)}: {cause}{_in_brackets(each.detail)}."


def _is_present(event: OperatorEvent, explanation: Explanation) -> bool:
    """Return whether this is the change that the program itself reports."""
    return explanation.since is not None and event.when > explanation.since - _SAME


def _often(events: Sequence[OperatorEvent], what: str, evidence: Evidence) -> Iterator[str]:
    """Yield how often something happened within the last hour, if that is more than there and back."""
    recent = [each for each in events if evidence.now - each.when <= _HOUR]
    if len(recent) > len(("there", "back")):
        yield f"{what} {len(recent)} times in the last hour."


def _times(
    about: Iterable[OperatorEvent],
    kind: EventKind,
    what: str,
    evidence: Evidence,
    why: Callable[[OperatorEvent], str],
) -> Iterator[str]:
    """Yield how often something happened, in the last hour or else the last day, and when with its causes."""
    found = [each for each in about if each.kind is kind]
    recent = [each for each in found if evidence.now - each.when <= _HOUR]
    counted, span = (recent, _HOUR) if recent else (found, REMEMBERED)
    if not counted:
        return
    often = f"{len(counted)} times" if len(counted) > 1 else "once"
    newest = [f"{evidence.moment(each.when)}{_in_brackets(why(each))}" for each in counted[-_TOLD:]]
    last = ", the last ones" if len(counted) > _TOLD else ""
    yield f"{what} {often} in the last {duration(span)}{last}: {', '.join(newest)}."


def _detail(event: OperatorEvent) -> str:
    return event.detail


def _cause_and_detail(event: OperatorEvent) -> str:
    return ", ".join(filter(None, (event.cause, event.detail)))


def _in_brackets(text: str) -> str:
    return f" ({printable(text)})" if text else ""
