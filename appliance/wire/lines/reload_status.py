"""The answer of `reload` to `status`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from appliance.wire.lines.control import AnswerProblem
from appliance.wire.lines.status_answer import StatusAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class LastReload:
    """The last finished reload: its time, in Unix seconds, and whether it succeeded."""

    at: float
    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadStatus(StatusAnswer):
    """The answer.

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
