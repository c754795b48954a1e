"""What the program `forward` answers to `status`: written by it, read by `appliance status`.

Whatever is absent has a default, so that the answer of another version can still be read. Moments are Unix
seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from appliance.wire.boards.worker_board import FrontendCounters, ServerCounters


class ForwardStatusError(Exception):
    """The answer does not hold the status of `forward`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardedGroup:
    """What the kernel has counted for the frontends of a group, under the name of its proxy, `proxy-api`.

    Bytes are those of whole packets; `failed` are connections that came while no server was up.
    """

    program: str
    frontends: tuple[FrontendCounters, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardStatus:
    """The whole answer. `trouble` is why the rules are not as they should be, empty where they are."""

    program: str = ""
    pid: int | None = None
    started_at: float = 0.0
    snapshot: int = 0
    pending: int | None = None
    trouble: str = ""
    groups: tuple[ForwardedGroup, ...] = ()
    servers: tuple[ServerCounters, ...] = ()


def encode(status: ForwardStatus) -> dict[str, object]:
    """Return the values of the answer."""
    values: dict[str, object] = msgspec.to_builtins(status)
    return values


def decode(values: Mapping[str, object]) -> ForwardStatus:
    """Return the status that an answer's values hold; raises ForwardStatusError."""
    try:
        return msgspec.convert(dict(values), ForwardStatus)
    except msgspec.ValidationError as error:
        raise ForwardStatusError(str(error)) from error
