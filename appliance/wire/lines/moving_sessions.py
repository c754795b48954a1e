"""Sessions moving from one worker to another: the data that accompanies their descriptors.

A worker whose generation drains sends an `offer` of a batch to one of the newer generation, and then which of
it to `take`. The descriptors are passed with the line of `offer`, in the order of `descriptors_of`. Times are
seconds before the line was written, as two processes may count from different moments.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal, TypeVar

import msgspec

from appliance.model.snapshot.pools import Server
from appliance.wire.lines.control import Answer, ControlError

OPEN_ONLY: Final = 1
"""The version of an offer of sessions that all relay: the first release that moves sessions reads it."""

WITH_WAITING: Final = 2
"""The version of an offer with sessions that wait for a server. Releases without that version refuse it."""

MOST_SESSIONS: Final = 100
"""Most sessions of one batch."""

NO_ROOM: Final = "no descriptors left"
"""A reason to refuse a session that soon passes: the session may be offered again."""

MOST_HELD: Final = 1 << 18
"""Most bytes that one side of a session holds in memory: all that a pipe can have held."""

_MOST_TRIED: Final = 1000
_Count = Annotated[int, msgspec.Meta(ge=0)]
_Ago = Annotated[float, msgspec.Meta(ge=0.0)]
_Bytes = Annotated[bytes, msgspec.Meta(max_length=MOST_HELD)]
_Name = Annotated[str, msgspec.Meta(max_length=256)]
_Message = TypeVar("_Message")


class MovingSide(msgspec.Struct, frozen=True, kw_only=True):
    """One socket of a session: data read from it that the other socket has not taken yet.

    That is `backlog`, or `piped` bytes in a pipe whose two descriptors are passed too. `idle` is how long ago
    data last moved here, `first`: nothing was read since the connect.
    """

    count: _Count
    idle: _Ago
    eof: bool
    shut: bool
    first: bool
    backlog: _Bytes = b""
    piped: _Count = 0


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a session that does not relay yet.

    `early` is the data that the client has sent so far, `tried` are the servers whose connects failed, `left`
    is the seconds until its phase ends, and `dialled` how long ago the last connect began.
    """

    phase: Literal["queued", "delayed", "connecting"]
    early: _Bytes
    tried: Annotated[tuple[_Name, ...], msgspec.Meta(max_length=_MOST_TRIED)]
    left: float
    dialled: _Ago


class MovingSession(msgspec.Struct, frozen=True, kw_only=True):
    """One session. `id` is its id for operators, `member` its server as configured.

    `counted_in` and `counted_out` are bytes already in the counters of the former worker. `max_age` is what
    remains of it, None without one. `waiting` is None for a session that relays, which has everything else;
    one in a queue has no `member`, only one that connects has a `server`, and none that waits is `ready`.
    """

    id: _Name
    frontend: _Name
    pool: _Name
    member: Server | None
    address: _Bytes
    started: _Ago
    connect: _Ago | None
    ready: _Ago | None
    attempts: _Count
    counted_in: _Count
    counted_out: _Count
    keepalive_set: bool
    max_age: float | None
    client: MovingSide
    server: MovingSide | None
    waiting: Waiting | None = None

    def __post_init__(self) -> None:
        """Reject combinations that no session can have."""
        phase = "open" if self.waiting is None else self.waiting.phase
        if (self.member is not None) is not (phase != "queued"):
            raise ValueError(f"a session that is {phase}, and its server")
        if (self.server is not None) is not (phase in ("open", "connecting")):
            raise ValueError(f"a session that is {phase}, and its connection to a server")
        if phase == "open" and (self.connect is None or self.ready is None):
            raise ValueError("an open session that was never connected")


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that is offered."""

    version: int
    sessions: Annotated[tuple[MovingSession, ...], msgspec.Meta(max_length=MOST_SESSIONS)]


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to an offer: for each session "" if it can be taken, or why not."""

    refused: Annotated[tuple[str, ...], msgspec.Meta(max_length=MOST_SESSIONS)]


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """The sessions of the batch offered last to take now, by their positions in it."""

    places: Annotated[tuple[_Count, ...], msgspec.Meta(max_length=MOST_SESSIONS)]


def values(message: Offer | Offered | Taken) -> dict[str, object]:
    """Return a message as the values of a question or an answer."""
    return msgspec.structs.asdict(message)


def offer_of(sessions: Sequence[MovingSession]) -> Offer:
    """Return an offer in the lowest version that can express these sessions."""
    waiting = any(each.waiting is not None for each in sessions)
    return Offer(version=WITH_WAITING if waiting else OPEN_ONLY, sessions=tuple(sessions))


def offer(given: Mapping[str, object]) -> Offer:
    """Return the offer of a question; raises ControlError."""
    version = given.get("version")
    if version not in (OPEN_ONLY, WITH_WAITING):
        raise ControlError(f"offer: version {version} of moving sessions, not {OPEN_ONLY} or {WITH_WAITING}")
    return _converted(given, Offer)


def refusals(answer: Answer, sessions: int) -> tuple[str, ...]:
    """Return for each of `sessions` offered why it is refused, or ""; raises ControlError."""
    if not answer.ok:
        raise ControlError(answer.reason)
    refused = _converted(answer.values, Offered).refused
    if len(refused) != sessions:
        raise ControlError(f"an answer for {len(refused)} of {sessions} sessions")
    return refused


def taken(given: Mapping[str, object]) -> Taken:
    """Return the parameters of `take`; raises ControlError."""
    return _converted(given, Taken)


def descriptors_of(session: MovingSession) -> int:
    """Return a session's number of descriptors: client, server, and reader and writer of each pipe."""
    sides = [each for each in (session.client, session.server) if each is not None]
    return len(sides) + 2 * sum(1 for each in sides if each.piped)


def _converted(given: Mapping[str, object], kind: type[_Message]) -> _Message:
    try:
        return msgspec.convert(given, kind)
    except (msgspec.ValidationError, ValueError) as error:
        raise ControlError(f"moving sessions: {error}") from error
