"""The phases of a session, and which events may happen in each of them.

    phase       the session                                      what is watched
    ----------  -----------------------------------------------  ----------------------------------
    queued      waits for a place at a server                    the client, so that it may leave
    delayed     has a place, and connects in a while             the client, if it has been queued
    connecting  is placed, or its connect is under way           the server, for the connect's end
    open        moves bytes                                      both sides
    closed      has ended                                        nothing

A session begins as `connecting`. The table shows, for each event and the phase that it comes in, the possible
phases after it, by their first letter (closed is `x`); `-` means that it cannot happen:

    event         queued  delayed  connecting  open   closed
    ------------  ------  -------  ----------  -----  ------
    start         -       -        qdcox       -      -
    client-sends  qx      dx       -           ox     -
    server-sends  -       -        -           ox     -
    place-free    qdx     -        -           -      -
    delay-over    q       qdcox    c           o      x
    connected     -       -        qdcox       -      -
    deadline      x       qdcox    qdcox       ox     x
    server-lost   -       qdcox    qdcox       x      -
    end           x       x        x           x      x

The events of the data path (`client-sends`, `server-sends`, `connected`) come from its two sockets;
`on_side_events` and the sides themselves interpret them by phase. `place-free`, `delay-over`, `deadline` and
`server-lost` come from outside. `session` runs them through a table of handlers, and reports an impossible
one as a bug. `delay-over` is a callback that cannot be cancelled: in phases other than `delayed` it is late,
and changes nothing.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final, Protocol, TypeVar

QUEUED: Final = 0
DELAYED: Final = 1
CONNECTING: Final = 2
OPEN: Final = 3
CLOSED: Final = 4
# Numbers and no Enum: in a compiled session a member of an Enum would be an object, this is a C int.

PHASES: Final = ("queued", "delayed", "connecting", "open", "closed")
"""Names of the phases, as shown to operators in `appliance sessions`."""


class SessionEvent(StrEnum):
    """What may happen to a session."""

    START = "start"
    CLIENT_SENDS = "client-sends"
    SERVER_SENDS = "server-sends"
    PLACE_FREE = "place-free"
    DELAY_OVER = "delay-over"
    CONNECTED = "connected"
    DEADLINE = "deadline"
    SERVER_LOST = "server-lost"
    END = "end"


_PLACED_ANEW: Final = frozenset({QUEUED, DELAYED, CONNECTING, OPEN, CLOSED})
"""The phases after a failed connect: another server, the same one after a while, a wait, or the end. Open if
the server is on this machine: its connect finishes at once.
"""

TRANSITIONS: Final[Mapping[SessionEvent, Mapping[int, frozenset[int]]]] = {
    SessionEvent.START: {CONNECTING: _PLACED_ANEW},
    SessionEvent.CLIENT_SENDS: {
        QUEUED: frozenset({QUEUED, CLOSED}),
        DELAYED: frozenset({DELAYED, CLOSED}),
        OPEN: frozenset({OPEN, CLOSED}),
    },
    SessionEvent.SERVER_SENDS: {OPEN: frozenset({OPEN, CLOSED})},
    SessionEvent.PLACE_FREE: {QUEUED: frozenset({QUEUED, DELAYED, CLOSED})},
    SessionEvent.DELAY_OVER: {
        QUEUED: frozenset({QUEUED}),
        DELAYED: _PLACED_ANEW,
        CONNECTING: frozenset({CONNECTING}),
        OPEN: frozenset({OPEN}),
        CLOSED: frozenset({CLOSED}),
    },
    SessionEvent.CONNECTED: {CONNECTING: _PLACED_ANEW},
    SessionEvent.DEADLINE: {
        QUEUED: frozenset({CLOSED}),
        DELAYED: _PLACED_ANEW,
        CONNECTING: _PLACED_ANEW,
        OPEN: frozenset({OPEN, CLOSED}),
        CLOSED: frozenset({CLOSED}),
    },
    SessionEvent.SERVER_LOST: {DELAYED: _PLACED_ANEW, CONNECTING: _PLACED_ANEW, OPEN: frozenset({CLOSED})},
    SessionEvent.END: dict.fromkeys(range(len(PHASES)), frozenset({CLOSED})),
}
"""The table above: event, phase before, phases after."""


class UnexpectedEventError(Exception):
    """An event came in a phase in which it cannot happen: a bug."""


class _Reporting(Protocol):
    def report_unexpected(self, event: SessionEvent) -> None: ...


_Session = TypeVar("_Session", bound=_Reporting)


def by_phase(
    event: SessionEvent, handlers: Mapping[int, Callable[[_Session], None]]
) -> tuple[Callable[[_Session], None], ...]:
    """Return an event's handlers by the number of the phase; a missing one reports the event."""

    def report(session: _Session) -> None:
        session.report_unexpected(event)

    return tuple(handlers.get(phase, report) for phase in range(len(PHASES)))
