"""When a node knows which nodes have a virtual IP's connections, and so may take over from a living node.

It has received the active node's reports, and that node has received its own: it then forwards unknown
packets there, and the other node keeps the address for it. Or no active node runs this protocol: after more
reports than could get lost, there is nothing to learn.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from appliance.core.linger.nodes import Keeper

ALONE: Final = 3.0
"""Seconds of exchange after which a silent active node does not run this protocol: ten reports."""


def informed(
    routers: Mapping[str, str],
    keepers: Iterable[Keeper],
    *,
    macs: Collection[bytes],
    talking: Mapping[str, float],
    now: float,
) -> frozenset[str]:
    """Return the virtual routers for which that holds, for all their addresses.

    `routers` has the virtual router of each address, `talking` since when this node exchanges reports of it.
    `macs` are this node's own, by which other nodes report that they receive its reports.
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
