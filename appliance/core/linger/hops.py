"""To which node to forward packets that belong to no connection of this node, by the nodes' reports.

A packet from a client goes to the node that serves the address, otherwise to the one that left it last. A
packet that another node has forwarded goes only to a node that left the address earlier than this one, and
never back. So it travels from node to node backwards through the times of their service, and never in a
circle, even while a node does not know yet that another one serves the address.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from appliance.core.linger.nodes import Keeper
from appliance.core.linger.served_addresses import ServedAddress


@dataclass(frozen=True, slots=True, kw_only=True)
class Hops:
    """To which node packets of an address go: those of clients, and those that another node has forwarded.

    `led` is by the MAC of the node that has forwarded the packet, and the address.
    """

    direct: Mapping[str, str]
    led: Mapping[tuple[bytes, str], str]


def hops(keepers: Iterable[Keeper], served: Mapping[str, ServedAddress], *, nodes: Iterable[bytes]) -> Hops:
    """Return where packets go; `served` are ours, `nodes` the MACs of nodes that may forward here."""
    ordered = sorted(keepers, key=lambda each: (each.active, each.left_at, each.node))
    direct = {each.address: each.node for each in ordered}
    earlier = [each for each in ordered if _is_earlier(each, served.get(each.address))]
    led = {
        (sender, each.address): each.node
        for sender in sorted(nodes)
        for each in earlier
        if each.mac != sender
    }
    return Hops(direct=direct, led=led)


def _is_earlier(keeper: Keeper, ours: ServedAddress | None) -> bool:
    if keeper.active:
        return False
    return ours is None or ours.left_at is None or keeper.left_at < ours.left_at
