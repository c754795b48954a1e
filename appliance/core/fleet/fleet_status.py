"""What the statuses of all nodes say together: which virtual IP is where, and what differs."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from appliance.wire.lines.node_answers import NodeStatus

_NUMBER: Final = re.compile(r"[0-9]+")

_SHOWN: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    """The status of one node, or why there is none: exactly one of the two."""

    name: str
    status: NodeStatus | None = None
    trouble: str | None = None

    @property
    def holds(self) -> tuple[str, ...]:
        """Return the virtual IPs that are active on this node."""
        found = self.status.virtual_ips if self.status else ()
        return tuple(each.name for each in found if each.active)


def shown(digest: str | None) -> str:
    """Return the digest of a configuration in the length in which people compare it."""
    return (digest or "-")[:_SHOWN]


def problems(reports: Sequence[NodeReport]) -> tuple[str, ...]:
    """Return what is wrong at each node, then what is wrong between them."""
    return (
        *problems_of_nodes(reports),
        *_differing(reports, "configurations", lambda status: status.digest and shown(status.digest)),
        *_differing(reports, "releases", lambda status: status.version),
    )


def problems_of_nodes(reports: Sequence[NodeReport]) -> tuple[str, ...]:
    """Return what is wrong at each node, and the virtual IPs that no node has."""
    return (*_of_nodes(reports), *_unheld(reports))


def _of_nodes(reports: Sequence[NodeReport]) -> Iterator[str]:
    for each in reports:
        if each.status is None:
            yield f"{each.name}: {each.trouble}"
            continue
        for problem in each.status.problems:
            yield f"{each.name}: {problem}"
        if not each.status.ok and not each.status.problems:
            yield f"{each.name}: reports a problem, but no reason"


def _differing(
    reports: Sequence[NodeReport], what: str, value: Callable[[NodeStatus], str | None]
) -> Iterator[str]:
    """Yield that nodes differ in what they run; of a node that does not say it, nothing is concluded."""
    known = {each.name: found for each in reports if each.status and (found := value(each.status))}
    if len(set(known.values())) > 1:
        yield f"the nodes run different {what}: {', '.join(f'{name} {each}' for name, each in known.items())}"


def _unheld(reports: Sequence[NodeReport]) -> Iterator[str]:
    """Yield the virtual IPs that are active nowhere, if all nodes have answered."""
    statuses = [each.status for each in reports if each.status]
    if len(statuses) < len(reports):
        return
    every = [each for status in statuses for each in status.virtual_ips]
    held = {each.name for each in every if each.active}
    known = dict.fromkeys(each.name for each in every if each.active is not None)
    for name in known:
        if name not in held:
            yield f"no node has the virtual IP {name}"


def turns(reports: Sequence[NodeReport], version: str | None) -> tuple[str, ...]:
    """Return the nodes in the order of their upgrade: those that hold no virtual IP first.

    Nodes that have the version already are left out; None is a version that is not known.
    """
    left = [each for each in reports if each.status and (version is None or each.status.version != version)]
    return tuple(each.name for each in sorted(left, key=lambda each: bool(each.holds)))


def objection(reports: Sequence[NodeReport], *, back: bool) -> str | None:
    """Return why no node may be upgraded now, None if they may.

    One that does not answer may be the only one that could serve; where releases differ, the former one of a
    node may be older than what it is to go back from.
    """
    silent = [f"{each.name}: {each.trouble}" for each in reports if each.status is None]
    if silent:
        return "; ".join(silent)
    versions = {each.name: each.status.version for each in reports if each.status}
    if back and len(set(versions.values())) > 1:
        return f"the nodes run different releases: {', '.join(f'{k} {v}' for k, v in versions.items())}"
    return None


def new_problems(before: Sequence[NodeReport], now: Sequence[NodeReport]) -> tuple[str, ...]:
    """Return what is wrong now at any node and was not before; numbers in a sentence mean no difference."""
    known = {_NUMBER.sub("", each) for each in problems_of_nodes(before)}
    return tuple(each for each in problems_of_nodes(now) if _NUMBER.sub("", each) not in known)
