"""Sessions in these tests are watched: whatever happens to one must be in the table of its phases."""

import socket
from collections.abc import Callable, Iterator

import pytest

from appliance.worker.relay.raw_io import COMPILED
from appliance.worker.relay.session.session import Session
from appliance.worker.relay.session.session_phases import PHASES, TRANSITIONS, SessionEvent

_EVENTS = {
    "begin": SessionEvent.START,
    "on_early": SessionEvent.CLIENT_SENDS,
    "place_free": SessionEvent.PLACE_FREE,
    "on_delay_over": SessionEvent.DELAY_OVER,
    "on_connected": SessionEvent.CONNECTED,
    "leave_server": SessionEvent.SERVER_LOST,
    "end": SessionEvent.END,
}

Seen = set[tuple[SessionEvent, int, int]]


class _Watch:
    """Notes each event that comes from outside, with the phases before and after it."""

    def __init__(self) -> None:
        self.seen: Seen = set()
        self._inside: set[Session] = set()

    def wrap(self, event: SessionEvent, method: Callable[..., None]) -> Callable[..., None]:
        """Return the method watched; what it calls of the same session is a part of the event."""

        def watched(session: Session, *arguments: object) -> None:
            if session in self._inside:
                method(session, *arguments)
                return
            before = session.phase
            self._inside.add(session)
            try:
                method(session, *arguments)
            finally:
                self._inside.discard(session)
                self.seen.add((event, before, session.phase))

        return watched

    def expire(self, method: Callable[[Session, float], None]) -> Callable[[Session, float], None]:
        """Return `expire` watched: a look before the deadline is no event."""
        event = self.wrap(SessionEvent.DEADLINE, method)

        def watched(session: Session, now: float) -> None:
            (event if now >= session.deadline else method)(session, now)

        return watched


@pytest.fixture(autouse=True)
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Seen]:
    """Give the transitions that the sessions of a test make; at its end all must be in the table."""
    watch = _Watch()
    if COMPILED:  # its methods cannot be replaced
        yield watch.seen
        return
    for name, event in _EVENTS.items():
        monkeypatch.setattr(Session, name, watch.wrap(event, getattr(Session, name)))
    monkeypatch.setattr(Session, "expire", watch.expire(Session.expire))
    yield watch.seen
    impossible = [
        f"{event} while {PHASES[before]}: {PHASES[after]}"
        for event, before, after in watch.seen
        if after not in TRANSITIONS[event].get(before, frozenset())
    ]
    assert impossible == []


@pytest.fixture(params=["127.0.0.1", "::1"])
def listener(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    """Give a non-blocking listener of either family."""
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    with socket.create_server((request.param, 0), family=family) as listening:
        listening.setblocking(False)  # noqa: FBT003  # the standard library's signature
        yield listening
