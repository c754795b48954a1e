"""The answer of the program `forward` to `status`, read by `appliance status`.

Every field has a default, so that the answer of another version can still be read. Times are Unix seconds.
"""

from dataclasses import dataclass

from appliance.wire.boards.worker_board import FrontendCounters, ServerCounters
from appliance.wire.lines.status_answer import StatusAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardedGroup:
    """The kernel's counters for the frontends of a group, under the name of its proxy, `proxy-api`.

    Bytes are those of whole packets; `failed` are connections that arrived while no server was up.
    """

    program: str
    frontends: tuple[FrontendCounters, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardStatus(StatusAnswer):
    """The whole answer. `trouble` is why the rules are not as intended, empty if they are."""

    trouble: str = ""
    groups: tuple[ForwardedGroup, ...] = ()
    servers: tuple[ServerCounters, ...] = ()
