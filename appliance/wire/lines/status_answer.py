"""The part of the answer to `status` that all programs share; the rest has a type for each program.

Missing fields have defaults, and unknown ones are ignored, so that the answer of another version can still be
read. Times are Unix seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from appliance.wire.lines.control import AnswerProblem

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyStatus(StatusAnswer):
    """The answer of a proxy master; `generation` is the one whose workers accept connections."""

    generation: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LastReload:
    """The last finished reload: its time, in Unix seconds, and whether it succeeded."""

    at: float
    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadStatus(StatusAnswer):
    """The answer of `reload`.

    `digest` is the SHA-256 of the operator's files that are accepted, None while they have not been read.
    `common` is the digest of what all nodes have in common of them, and `node` this node's name for the
    others, both "" if they are not known or not needed.
    `reloads` counts reloads by result, `last` is the last one. `refused` has its problems, empty after a
    success. It is tried again in `again_in` seconds, None if it is not.
    """

    version: str | None = None
    digest: str | None = None
    common: str = ""
    node: str = ""
    refused: tuple[AnswerProblem, ...] = ()
    again_in: float | None = None
    reloads: Mapping[str, int] = field(default_factory=dict)
    last: LastReload | None = None


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
