"""An upgrade of all nodes, one after another: whose turn is next, and whether all are as well as before."""

import re
from collections.abc import Sequence
from typing import Final

from appliance.core.fleet.fleet_status import NodeReport, problems_of_nodes

_NUMBER: Final = re.compile(r"[0-9]+")


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
