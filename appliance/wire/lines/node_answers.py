"""What commands on other nodes print as JSON, read by `appliance fleet`.

The node may run another release: unknown fields are ignored, and missing ones have defaults. A login shell
may print lines of its own first.
"""

from typing import Final, TypeVar

import msgspec

from appliance.model.messages.quoting import printable
from appliance.wire.lines.control import AnswerProblem

LONGEST: Final = 32 << 20
"""Longest output of a command that is read, bytes: the status of thousands of servers."""

_Answer = TypeVar("_Answer")
_VALUES: Final[type[dict[str, object] | list[object]]] = dict[str, object] | list[object]  # type: ignore[assignment]  # a union is as good to msgspec


class NodeAnswerError(Exception):
    """The output is not the answer of a command of ours."""


class NodeVirtualIp(msgspec.Struct, frozen=True, kw_only=True):
    """A virtual IP as `appliance status` shows it; `active` is None if it is not known."""

    name: str
    addresses: tuple[str, ...] = ()
    state: str | None = None
    active: bool | None = None


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The part of `appliance status --json` that concerns all nodes."""

    ok: bool
    problems: tuple[str, ...] = ()
    version: str | None = None
    digest: str | None = None
    virtual_ips: tuple[NodeVirtualIp, ...] = ()


class NodeVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a node says of a configuration: `appliance check --json`, or a step of `appliance fleet accept`.

    `step` is which one, "" for `check`. `runs` is whether an appliance runs there.
    """

    ok: bool
    step: str = ""
    errors: tuple[AnswerProblem, ...] = ()
    warnings: tuple[AnswerProblem, ...] = ()
    runs: bool = True


def status(output: bytes) -> NodeStatus:
    """Return the status in the output of `appliance status --json`; raises NodeAnswerError."""
    return _decoded(_json(output), NodeStatus)


def verdict(output: bytes) -> NodeVerdict:
    """Return the verdict in the output of `appliance check --json`; raises NodeAnswerError."""
    return _decoded(_json(output), NodeVerdict)


def step(line: bytes) -> NodeVerdict | None:
    """Return the verdict in one line, None for a line of another program; raises NodeAnswerError."""
    return _decoded(line, NodeVerdict) if line.startswith(b"{") else None


def values(output: bytes) -> dict[str, object] | list[object]:
    """Return the JSON in the output of any command; raises NodeAnswerError."""
    return _decoded(_json(output), _VALUES)


def _json(output: bytes) -> bytes:
    """Return the output from the first line on that begins a JSON object or list."""
    begins = min(
        (at for at in (_line(output, b"{"), _line(output, b"[")) if at is not None), default=len(output)
    )
    return output[begins:].strip()


def _line(output: bytes, start: bytes) -> int | None:
    if output.startswith(start):
        return 0
    at = output.find(b"\n" + start)
    return at + 1 if at >= 0 else None


def _decoded(data: bytes, kind: type[_Answer]) -> _Answer:
    if not data:
        raise NodeAnswerError("nothing was answered")
    try:
        return msgspec.json.decode(data, type=kind)
    except (ValueError, RecursionError) as error:  # msgspec's own errors are ValueErrors
        raise NodeAnswerError(f"the answer cannot be understood: {printable(str(error))}") from error
