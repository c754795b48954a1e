"""The part of the answer to `status` that all programs share; the rest has a type for each program.

Missing fields have defaults, and unknown ones are ignored, so that the answer of another version can still be
read. Times are Unix seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

Status = TypeVar("Status")


class StatusAnswerError(Exception):
    """The answer does not hold the status requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusAnswer:
    """The shared fields.

    `snapshot` is the number of the configuration in use, `pending` that of a prepared one. `not_kept` are
    files that the program cannot write, `socket_failures` sockets on which it cannot listen, with the
    reasons.
    """

    program: str = ""
    pid: int | None = None
    started_at: float | None = None
    snapshot: int | None = None
    pending: int | None = None
    not_kept: Mapping[str, str] = field(default_factory=dict)
    socket_failures: Mapping[str, str] = field(default_factory=dict)


def encode(status: object) -> dict[str, object]:
    """Return the values of the answer."""
    values: dict[str, object] = msgspec.to_builtins(status)
    return values


def decode(values: Mapping[str, object], kind: type[Status]) -> Status:
    """Return the status in an answer's values; raises StatusAnswerError."""
    try:
        return msgspec.convert(dict(values), kind)
    except msgspec.ValidationError as error:
        raise StatusAnswerError(str(error)) from error
