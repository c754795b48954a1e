"""Nodes that exchange no reports with this node, in one direction: if a virtual IP moves, connections end."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from appliance.core.linger.nodes import Keeper, Neighbour
from appliance.wire.linger_report import ReportDrop

ALONE: Final = 3.0
"""Seconds of exchange after which a silent active node does not run this protocol: ten reports."""

WHY: Final = {
    ReportDrop.DIGEST: "signed with a key that this node does not accept",
    ReportDrop.VERSION: "of another version",
    ReportDrop.LAYOUT: "damaged",
    ReportDrop.HOP_LIMIT: "sent through a router",
}
"""Why reports of a node are unusable; others are an attacker's, or wait for an answer."""


def informed(
    routers: Mapping[str, str],
    keepers: Iterable[Keeper],
    *,
    macs: Collection[bytes],
    talking: Mapping[str, float],
    now: float,
) -> frozenset[str]:
    """Return the virtual routers whose connections this node knows: it may take over.

    `routers` has the virtual router of each address, `talking` since when this node exchanges reports of it.
    `macs` are this node's own, by which other nodes report that they receive its reports.

    It has received the active node's reports, and that node has received its own: it then forwards unknown
    packets there, and the other node keeps the address for it. Or no active node runs this protocol: after
    more reports than could get lost, there is nothing to learn.
    """
    active = [each for each in keepers if each.active]
    served = {each.address for each in active}
    agreed = {each.address for each in active if not each.heard.isdisjoint(macs)}
    waiting = {
        name
        for address, name in routers.items()
        if address not in agreed
        and (address in served or address not in talking or now - talking[address] < ALONE)
    }
    return frozenset(routers.values()) - waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """A virtual router that another node, `peer`, serves, with its addresses."""

    name: str
    peer: str
    addresses: Collection[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """How this node takes part on an interface: `since` when, with which `macs`, and its unicast `peers`.

    `refused` has the reasons for recent unusable reports, by their source.
    """

    since: float
    macs: Collection[bytes]
    peers: Collection[str]
    refused: Mapping[str, ReportDrop]


def unheard(
    listening: Listening,
    neighbours: Iterable[Neighbour],
    elsewhere: Iterable[Elsewhere],
    keepers: Iterable[Keeper],
    *,
    now: float,
) -> Iterator[str]:
    """Yield each such node and why; nothing in the first seconds, until all could send ten reports."""
    if now - listening.since < ALONE:
        return
    known = {each.node: each for each in neighbours}
    serving = {each.address for each in keepers if each.active}
    missing = {peer: f"{peer} sends no reports" for peer in listening.peers if peer not in known}
    for router in elsewhere:
        if router.peer not in known and serving.isdisjoint(router.addresses):
            missing[router.peer] = f"{router.peer} serves {router.name} and sends no reports"
    for node, reason in listening.refused.items():
        if node not in known and reason in WHY:
            missing[node] = f"reports of {node} are {WHY[reason]}"
    yield from missing.values()
    for node, each in known.items():
        if each.heard.isdisjoint(listening.macs) and now - each.since >= ALONE:
            yield f"{node} receives no reports from this node: is its UDP port open?"
