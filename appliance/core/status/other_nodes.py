"""What is wrong between this node and the others, by the answer of the program `linger`."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from appliance.core.status.problem_kinds import ProblemKind, StatusProblem
from appliance.core.status.status import Status
from appliance.wire.lines.linger_status import OtherNode

_NAMED: Final = 3


def differences(nodes: Iterable[OtherNode]) -> Iterator[StatusProblem]:
    """Yield that a node runs another configuration, and which servers it finds in another state."""
    for each in nodes:
        if each.differs_since is not None:
            since = f"(since {_moment(each.differs_since)})"
            yield StatusProblem(ProblemKind.NODE_DIFFERS, each.name, detail=since)
        for server in each.judged[:_NAMED]:
            said = f"{server.server} is {server.here} here and {server.there} at {each.name}"
            detail = f"{said} (since {_moment(server.since)})"
            yield StatusProblem(ProblemKind.JUDGED_DIFFERENTLY, each.name, detail=detail)
        if len(each.judged) > _NAMED:
            detail = f"{len(each.judged) - _NAMED} more servers are in another state at {each.name} than here"
            yield StatusProblem(ProblemKind.JUDGED_DIFFERENTLY, each.name, detail=detail)


def holds(status: Status, node: OtherNode) -> tuple[str, ...]:
    """Return the virtual IPs and shared IPs that another node serves, as far as this one knows."""
    virtual = (each.name for each in status.virtual_ips if each.active_peer in node.addresses)
    shared = (each.name for each in status.shared_ips if not set(each.others).isdisjoint(node.addresses))
    return (*virtual, *shared)


def _moment(at: float) -> str:
    """Return Unix seconds in the form for all operators, wherever they are."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"
