"""A connection as a worker or `forward` lists it in its answer to `sessions`."""

from collections.abc import Iterable

import msgspec

from appliance.wire.lines.control import Answer, ControlError, good

_KEY = "sessions"
_LEFT_OUT = "left_out"


class ListedSession(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One connection. Times are seconds; bytes are counted from the client's side: `bytes_in` came from it.

    `id` is unique on this machine, for `sessions kill`. `server` is POOL/SERVER, None before one was chosen.
    `phase` is the name of a session's phase, or `responding` if the worker answers itself, or `forwarded` if
    the kernel moves the bytes (`forward: kernel`). The kernel does not report everything: None means unknown,
    and `remaining` is when it forgets a connection without packets.
    """

    id: str
    frontend: str
    client: str
    server: str | None
    age: float | None
    idle: float | None
    bytes_in: int | None
    bytes_out: int | None
    phase: str
    remaining: float | None = None


def encode(sessions: Iterable[ListedSession], *, left_out: int = 0) -> Answer:
    """Return the answer to `sessions`; `left_out` is how many more there are, too many for an answer."""
    return good(**{_KEY: list(sessions), _LEFT_OUT: left_out} if left_out else {_KEY: list(sessions)})


def encoded(session: ListedSession) -> bytes:
    """Return one connection encoded for an answer: a program with many encodes them in slices."""
    return msgspec.json.encode(session)


def of_encoded(sessions: Iterable[bytes]) -> Answer:
    """Return the answer to `sessions`, as `encode` does, from connections already encoded."""
    return good(**{_KEY: msgspec.Raw(b"[" + b",".join(sessions) + b"]")})


def left_out(answer: Answer) -> int:
    """Return how many connections an answer leaves out."""
    count = answer.values.get(_LEFT_OUT)
    return count if isinstance(count, int) else 0


def decode(answer: Answer) -> list[ListedSession]:
    """Return the connections in a worker's answer; raises ControlError if a field is wrong."""
    try:
        return msgspec.convert(answer.values.get(_KEY, []), list[ListedSession])
    except msgspec.ValidationError as error:
        raise ControlError(f"{_KEY}: {error}") from error
