"""The events of `reload`: the outcome of each change of configuration, and that a last-good copy runs."""

import time
from collections.abc import Iterable, Mapping, Sequence

from appliance.model.operator_events import EventKind, OperatorEvent
from appliance.net.files.degraded import Degraded
from appliance.wire.lines.control import AnswerProblem

_SUBJECT = "configuration"


def done(values: Mapping[str, object]) -> OperatorEvent:
    """Return the event of a configuration that all programs use."""
    changed = values.get("changed")
    names = ", ".join(map(str, changed)) if isinstance(changed, Sequence) else ""
    return _event(EventKind.RELOAD_DONE, after=_number(values), detail=names)


def refused(problems: Iterable[AnswerProblem]) -> OperatorEvent:
    """Return the event of a refused configuration: the one before it continues."""
    return _event(EventKind.RELOAD_REFUSED, detail=_words(problems))


def refused_for_now(problems: Iterable[AnswerProblem]) -> OperatorEvent:
    """Return the event of a configuration that was refused for now, and is retried automatically."""
    return _event(EventKind.RELOAD_REFUSED, detail=f"{_words(problems)}; it is tried again")


def incomplete(values: Mapping[str, object], problems: Iterable[AnswerProblem]) -> OperatorEvent:
    """Return the event of an accepted configuration that not all programs use yet."""
    return _event(EventKind.RELOAD_INCOMPLETE, after=_number(values), detail=_words(problems))


def last_good(note: Degraded) -> OperatorEvent:
    """Return the event of a start from the last-good copy; if repeated it is the same event."""
    return OperatorEvent(
        when=note.since,
        kind=EventKind.LAST_GOOD,
        subject=_SUBJECT,
        detail=_words(note.problems),
        id=f"last-good-{note.since}",
    )


def _event(kind: EventKind, *, after: str = "", detail: str = "") -> OperatorEvent:
    return OperatorEvent(when=time.time(), kind=kind, subject=_SUBJECT, after=after, detail=detail)


def _number(values: Mapping[str, object]) -> str:
    return str(values.get("configuration", ""))


def _words(problems: Iterable[AnswerProblem]) -> str:
    found = list(problems)
    if not found:
        return ""
    first = found[0]
    place = ":".join(str(each) for each in (first.source, first.line) if each is not None)
    words = ": ".join(filter(None, (place, first.path, first.message)))
    return words if len(found) == 1 else f"{words} (and {len(found) - 1} more)"
