"""Open sessions on their way from one worker to another: what stands beside their descriptors.

A worker whose generation drains asks one of the newer generation to `offer` a batch, and then which of it to
`take`. The descriptors travel beside the line of `offer`, in the order of `descriptors_of`. Times are seconds
before the line was written, as two processes may count theirs from different moments.
"""

from collections.abc import Mapping
from typing import Annotated, Final, TypeVar

import msgspec

from appliance.model.snapshot.pools import Server
from appliance.wire.lines.control import ControlError

VERSION: Final = 1
"""Of this form; a worker that is offered another one refuses, and the sessions drain."""

MOST_SESSIONS: Final = 100
"""Sessions of one batch."""

NO_ROOM: Final = "no descriptors left"
"""The reason against a session that may be offered again: it is over soon."""

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Ago = Annotated[float, msgspec.Meta(ge=0.0)]
_Bytes = Annotated[bytes, msgspec.Meta(max_length=1 << 17)]
_Name = Annotated[str, msgspec.Meta(max_length=256)]
_Message = TypeVar("_Message")


class MovingSide(msgspec.Struct, frozen=True, kw_only=True):
    """One socket of a session: what was read there, and what of it the other socket has not taken.

    That is `backlog`, or `piped` bytes in a pipe whose two descriptors travel along. `idle` is how long ago
    something moved here, `first` says that nothing was read since the connect.
    """

    count: _Count
    idle: _Ago
    eof: bool
    shut: bool
    first: bool
    backlog: _Bytes = b""
    piped: _Count = 0


class MovingSession(msgspec.Struct, frozen=True, kw_only=True):
    """One session. `id` is the one by which operators know it, `member` its server as it was configured.

    `counted_in` and `counted_out` are bytes that the counters of the former worker have already. `max_age`
    is what is left of it, None without one.
    """

    id: _Name
    frontend: _Name
    pool: _Name
    member: Server
    address: _Bytes
    started: _Ago
    connect: _Ago
    ready: _Ago
    attempts: _Count
    counted_in: _Count
    counted_out: _Count
    keepalive_set: bool
    max_age: float | None
    client: MovingSide
    server: MovingSide


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that is offered."""

    version: int
    sessions: Annotated[tuple[MovingSession, ...], msgspec.Meta(max_length=MOST_SESSIONS)]


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to an offer: for each session "" where it can be taken, or why it cannot."""

    refused: Annotated[tuple[str, ...], msgspec.Meta(max_length=MOST_SESSIONS)]


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """Which sessions of the batch offered last are to be taken now, by their places in it."""

    places: Annotated[tuple[_Count, ...], msgspec.Meta(max_length=MOST_SESSIONS)]


def values(message: Offer | Offered | Taken) -> dict[str, object]:
    """Return a message as the values of a question or an answer."""
    return msgspec.structs.asdict(message)


def offer(given: Mapping[str, object]) -> Offer:
    """Return the offer of a question; raises ControlError."""
    version = given.get("version")
    if version != VERSION:
        raise ControlError(f"offer: version {version} of moving sessions, not {VERSION}")
    return _converted(given, Offer)


def offered(given: Mapping[str, object]) -> Offered:
    """Return the answer to an offer; raises ControlError."""
    return _converted(given, Offered)


def taken(given: Mapping[str, object]) -> Taken:
    """Return the parameters of `take`; raises ControlError."""
    return _converted(given, Taken)


def descriptors_of(session: MovingSession) -> int:
    """Return how many descriptors a session has: client, server, and reader and writer of each pipe."""
    return 2 + 2 * sum(1 for each in (session.client, session.server) if each.piped)


def _converted(given: Mapping[str, object], kind: type[_Message]) -> _Message:
    try:
        return msgspec.convert(given, kind)
    except (msgspec.ValidationError, ValueError) as error:
        raise ControlError(f"moving sessions: {error}") from error
