"""What the program `forward` answers to `status`: written by it, read by `appliance status`.

Whatever is absent has a default, so that the answer of another version can still be read. Moments are Unix
seconds.
"""

from dataclasses import dataclass

from appliance.wire.boards.worker_board import FrontendCounters, ServerCounters
from appliance.wire.lines.status_answer import StatusAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardedGroup:
    """What the kernel has counted for the frontends of a group, under the name of its proxy, `proxy-api`.

    Bytes are those of whole packets; `failed` are connections that came while no server was up.
    """

    program: str
    frontends: tuple[FrontendCounters, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardStatus(StatusAnswer):
    """The whole answer. `trouble` is why the rules are not as they should be, empty where they are."""

    trouble: str = ""
    groups: tuple[ForwardedGroup, ...] = ()
    servers: tuple[ServerCounters, ...] = ()
