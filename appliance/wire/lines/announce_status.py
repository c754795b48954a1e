"""The answer of the program `announce` to `status`, read by `appliance bgp status`, `status` and `why`."""

from dataclasses import dataclass
from typing import Final

from appliance.wire.lines.status_answer import StatusAnswer

ESTABLISHED: Final = "Established"
"""The state of a session in which routes are exchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedIpStatus:
    """One shared IP at this node: `state` is a SharedState, `since` when and `reason` why.

    `neighbors` are those that it should be announced to, `announced_to` those that have it. `others` are the
    nodes that hold it too, by the reports of `linger`.
    """

    name: str
    addresses: tuple[str, ...] = ()
    state: str = ""
    since: float = 0.0
    reason: str = ""
    neighbors: tuple[str, ...] = ()
    announced_to: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighborStatus:
    """The session with one neighbour: `state` as in RFC 4271 ("Established"), `since` when it has that.

    `bfd` is "Up", "Down", "Init" or "AdminDown", "" without BFD. `error` is the last one.
    """

    name: str
    address: str = ""
    asn: int = 0
    state: str = ""
    since: float = 0.0
    bfd: str = ""
    exported: int = 0
    error: str = ""

    @property
    def is_up(self) -> bool:
        """Return whether routes are exchanged."""
        return self.state == ESTABLISHED


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnounceStatus(StatusAnswer):
    """The answer, of `engine` bird or table (neighbours unknown); `trouble` is what is not as configured."""

    trouble: str = ""
    engine: str = ""
    addresses: tuple[SharedIpStatus, ...] = ()
    neighbors: tuple[NeighborStatus, ...] = ()
