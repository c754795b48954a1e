"""Events as alerts of Alertmanager: which kind begins an alert, and which kinds end it.

Alertmanager's API v2 (openapi.yaml, postableAlert) takes labels, which identify the alert, annotations, and
when it starts and ends. An alert without an end would be resolved after Alertmanager's resolve_timeout, five
minutes: an alert that is sent only once gets its end here.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from appliance.model.operator_events import EventKind, OperatorEvent

LASTING: Final = 24 * 3600.0
"""Seconds after which an alert ends if no other event ends it before."""

MOMENT: Final = 3600.0
"""Seconds after which an alert ends that no event ends: a worker that died, a split brain that was won."""

_ENDS: Final[Mapping[EventKind, tuple[EventKind, ...]]] = {
    EventKind.SERVER_UP: (EventKind.SERVER_DOWN, EventKind.SERVER_UNREACHABLE),
    EventKind.POOL_SERVES: (EventKind.POOL_EMPTY,),
    EventKind.FRONTEND_HAS_ROOM: (EventKind.FRONTEND_FULL,),
    EventKind.RELOAD_DONE: (EventKind.RELOAD_REFUSED, EventKind.RELOAD_INCOMPLETE, EventKind.LAST_GOOD),
    EventKind.VIP_ACTIVE: (EventKind.VIP_FAULT,),
    EventKind.VIP_BACKUP: (EventKind.VIP_FAULT, EventKind.SPLIT_BRAIN),
    EventKind.IP_ANNOUNCED: (EventKind.IP_DRAINED, EventKind.IP_WITHDRAWN),
    EventKind.BGP_SESSION_UP: (EventKind.BGP_SESSION_DOWN,),
    EventKind.BFD_UP: (EventKind.BFD_DOWN,),
    EventKind.CONFIGURATION_AGREES: (EventKind.CONFIGURATION_DIFFERS,),
    EventKind.VERDICTS_AGREE: (EventKind.VERDICTS_DIFFER,),
    EventKind.PROGRAM_RUNNING: (EventKind.PROGRAM_EXITED, EventKind.PROGRAM_FAILING),
}
_ENDED: Final = frozenset(kind for kinds in _ENDS.values() for kind in kinds) - {EventKind.SPLIT_BRAIN}
"""If the split brain is won, no event ends its alert."""


def alerts(events: Iterable[OperatorEvent], host: str) -> Iterator[dict[str, object]]:
    """Yield the alerts of events; their label `instance` is `host`."""
    for event in events:
        ended = _ENDS.get(event.kind, ())
        for kind in ended:
            yield _alert(event, kind, host, ends=event.when)
        if not ended:
            lasts = LASTING if event.kind in _ENDED else MOMENT
            yield _alert(event, event.kind, host, ends=event.when + lasts)


def _alert(event: OperatorEvent, kind: EventKind, host: str, *, ends: float) -> dict[str, object]:
    return {
        "labels": {
            "alertname": f"appliance-{kind.value}",
            "severity": kind.severity.value,
            "instance": host,
            "subject": event.subject,
        },
        "annotations": {"summary": summary(event), "description": event.detail},
        "startsAt": _moment(event.when),
        "endsAt": _moment(ends),
    }


def summary(event: OperatorEvent) -> str:
    """Return an event as one line for readers."""
    change = f"{event.before} -> {event.after}" if event.before and event.after else event.after
    parts = (change, event.cause, event.detail)
    return f"{event.subject}: {event.kind.value}" + "".join(f", {each}" for each in parts if each)


def _moment(when: float) -> str:
    """Return Unix seconds in the form of RFC 3339."""
    return datetime.fromtimestamp(max(0.0, min(when, 253402300799.0)), UTC).isoformat(timespec="milliseconds")
