"""A connection as a worker lists it in its answer to `sessions`, and as `appliance sessions` reads it."""

from collections.abc import Iterable

import msgspec

from appliance.wire.lines.control import Answer, ControlError, good

_KEY = "sessions"


class ListedSession(msgspec.Struct, frozen=True, kw_only=True):
    """One connection. Times are seconds; bytes are as seen from the client: `bytes_in` came from it.

    `id` is unique on this machine, for `sessions kill`. `server` is POOL/SERVER, None before one was chosen.
    `phase` is the name of a session's phase, or `responding` where the worker answers itself.
    """

    id: str
    frontend: str
    client: str
    server: str | None
    age: float
    idle: float
    bytes_in: int
    bytes_out: int
    phase: str


def encode(sessions: Iterable[ListedSession]) -> Answer:
    """Return a worker's answer to `sessions`."""
    return good(**{_KEY: list(sessions)})


def decode(answer: Answer) -> list[ListedSession]:
    """Return the connections in a worker's answer; raises ControlError where a field is wrong."""
    try:
        return msgspec.convert(answer.values.get(_KEY, []), list[ListedSession])
    except msgspec.ValidationError as error:
        raise ControlError(f"{_KEY}: {error}") from error
