"""The answer of the program `migrate` to `status`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from appliance.wire.lines.status_answer import StatusAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class DepartureStatus:
    """The sessions of one address that this node has left: `moved` to `node`, and why others stay."""

    address: str
    node: str = ""
    moved: int = 0
    stay: Mapping[str, int] = field(default_factory=dict)
    trouble: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrateStatus(StatusAnswer):
    """The whole answer. `trouble` is why no session can move, empty if all is as intended.

    `given`, `taken` and `lost` count sessions since the start: to other nodes, from them, and those that
    ended on the way, or of which it is unknown whether the other node has them.
    """

    trouble: str = ""
    departures: tuple[DepartureStatus, ...] = ()
    given: int = 0
    taken: int = 0
    lost: int = 0
