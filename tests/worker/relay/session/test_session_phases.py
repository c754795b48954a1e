"""The table of a session's phases: it is what is drawn, and what real sessions do."""

import pytest

from appliance.worker.relay.session import session, session_phases
from appliance.worker.relay.session.session_phases import (
    CLOSED,
    CONNECTING,
    DELAYED,
    OPEN,
    PHASES,
    QUEUED,
    TRANSITIONS,
    SessionEvent,
    by_phase,
)

pytestmark = pytest.mark.pure

LETTERS = {QUEUED: "q", DELAYED: "d", CONNECTING: "c", OPEN: "o", CLOSED: "x"}


def drawn() -> list[list[str]]:
    """Return the rows of the drawing, each an event and what may follow it in each phase."""
    lines = (session_phases.__doc__ or "").splitlines()
    return [line.split() for line in lines if line.split()[:1] and line.split()[0] in set(SessionEvent)]


def test_the_drawing_is_the_table():
    """Each row of the drawing names the event and, for each phase, the phases that may follow."""
    rows = [
        [event, *("".join(LETTERS[each] for each in sorted(row.get(phase, ()))) or "-" for phase in LETTERS)]
        for event, row in TRANSITIONS.items()
    ]
    assert drawn() == rows
    assert [row[0] for row in rows] == list(SessionEvent)


def test_the_columns_are_the_phases():
    """The head of the drawing has the phases in their order, which is that of their names."""
    assert f"    event         {'  '.join(PHASES[:3])}  open   closed" in (session_phases.__doc__ or "")
    assert len(PHASES) == len(LETTERS)


@pytest.mark.parametrize(
    ("event", "handlers", "elsewhere"),
    [
        (SessionEvent.DELAY_OVER, session._ON_DELAY_OVER, set()),
        (SessionEvent.DEADLINE, session._ON_DEADLINE, {OPEN}),
        *((SessionEvent.SERVER_LOST, handlers, set()) for handlers in session._ON_SERVER_LOST.values()),
    ],
)
def test_what_cannot_happen_has_no_handler(
    event: SessionEvent, handlers: tuple[session.Session, ...], elsewhere: set[int]
):
    """The code's handlers are those of the table; `elsewhere` are phases that it asks for first."""
    report = by_phase(event, {})[0].__qualname__
    handled = {phase for phase, handler in enumerate(handlers) if handler.__qualname__ != report}
    assert handled | elsewhere == set(TRANSITIONS[event])


def test_an_event_without_a_handler_is_reported():
    """Every other phase reports the event, by its name."""

    class Phased:
        def __init__(self) -> None:
            self.handled: list[object] = []

        def report_unexpected(self, event: SessionEvent) -> None:
            self.handled.append(event)

    subject = Phased()
    for handler in by_phase(SessionEvent.SERVER_LOST, {OPEN: lambda given: given.handled.append("open")}):
        handler(subject)
    assert subject.handled == [*[SessionEvent.SERVER_LOST] * 3, "open", SessionEvent.SERVER_LOST]
