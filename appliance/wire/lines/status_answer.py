"""What every program answers to `status`; what only one of them answers is in a type of its own.

Whatever is absent has a default, and what is unknown is ignored, so that the answer of another version can
still be read. Moments are Unix seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from appliance.wire.lines.control import AnswerProblem

Status = TypeVar("Status")


class StatusAnswerError(Exception):
    """The answer does not hold the status that was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusAnswer:
    """What they have in common.

    `snapshot` is the number of the configuration in use, `pending` that of a prepared one. `not_kept` are
    files that the program cannot write, `socket_failures` sockets on which it does not listen, with the
    reasons.
    """

    program: str = ""
    pid: int | None = None
    started_at: float | None = None
    snapshot: int | None = None
    pending: int | None = None
    not_kept: Mapping[str, str] = field(default_factory=dict)
    socket_failures: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyStatus(StatusAnswer):
    """What a proxy master answers; `generation` is the one whose workers accept connections."""

    generation: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LastReload:
    """The reload that ended last: when, in Unix seconds, and whether it did what was asked."""

    at: float
    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadStatus(StatusAnswer):
    """What `reload` answers.

    `reloads` is how many had which result, `last` the last one. `refused` is what was wrong with it, empty
    after a good one. It is tried again in `again_in` seconds, None where it is not.
    """

    version: str | None = None
    refused: tuple[AnswerProblem, ...] = ()
    again_in: float | None = None
    reloads: Mapping[str, int] = field(default_factory=dict)
    last: LastReload | None = None


def encode(status: object) -> dict[str, object]:
    """Return the values of the answer."""
    values: dict[str, object] = msgspec.to_builtins(status)
    return values


def decode(values: Mapping[str, object], kind: type[Status]) -> Status:
    """Return the status that an answer's values hold; raises StatusAnswerError."""
    try:
        return msgspec.convert(dict(values), kind)
    except msgspec.ValidationError as error:
        raise StatusAnswerError(str(error)) from error
