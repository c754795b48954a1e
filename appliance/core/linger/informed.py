"""When a node knows whose connections of a virtual IP there are, so that it may take over from a living node.

It has heard the active node, and that node has heard it: what it does not know itself it leads there then,
and the other one keeps the address for it. Or nobody of our kind is active: after as many reports as nobody
loses there is nothing to be known.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from appliance.core.linger.nodes import Keeper

ALONE: Final = 3.0
"""Seconds of talking after which an active node that was not heard does not speak this: ten reports."""


def informed(
    routers: Mapping[str, str],
    keepers: Iterable[Keeper],
    *,
    macs: Collection[bytes],
    talking: Mapping[str, float],
    now: float,
) -> frozenset[str]:
    """Return the virtual routers of which that is known, for all their addresses.

    `routers` has the virtual router of each address, `talking` since when this node tells and hears of it.
    `macs` are this node's own, by which other nodes say that they have heard it.
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
