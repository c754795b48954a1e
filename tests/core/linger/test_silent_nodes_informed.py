"""When a node knows whose connections there are."""

import pytest

from appliance.core.linger.nodes import Keeper
from appliance.core.linger.silent_nodes import ALONE, informed

pytestmark = pytest.mark.pure

VIP, VIP6 = "192.0.2.100", "fd00::100"
OURS, OTHERS = bytes([2, 0, 0, 0, 0, 1]), bytes([2, 0, 0, 0, 0, 9])
START = 100.0


def keeper(address: str = VIP, *, active: bool = True, heard: tuple[bytes, ...] = (OURS, OTHERS)) -> Keeper:
    """Return what another node says."""
    return Keeper(
        node="192.0.2.1",
        mac=OTHERS,
        address=address,
        active=active,
        left_at=0.0,
        connections=5,
        heard=frozenset(heard),
    )


def names(
    *keepers: Keeper,
    after: float = 0.0,
    routers: dict[str, str] | None = None,
    talking: dict[str, float] | None = None,
) -> frozenset[str]:
    """Return who is informed, `after` seconds of talking."""
    return informed(
        {VIP: "api"} if routers is None else routers,
        keepers,
        macs=[OURS],
        talking=dict.fromkeys((VIP, VIP6), START) if talking is None else talking,
        now=START + after,
    )


def test_heard_both_ways():
    """The active node says that it has heard this one."""
    assert names(keeper()) == {"api"}


def test_heard_one_way():
    """As long as the active node has not heard us nothing is known, however long that takes."""
    assert names(keeper(heard=(OTHERS,)), after=10 * ALONE) == frozenset()


def test_nobody_of_our_kind():
    """An active node that does not report is none of ours, which is known after some time."""
    assert names(after=ALONE - 0.1) == frozenset()
    assert names(after=ALONE) == {"api"}
    assert names(keeper(active=False), after=ALONE - 0.1) == frozenset()
    assert names(keeper(active=False), after=ALONE) == {"api"}


def test_not_talking():
    """While nothing can be told or heard nothing is known."""
    assert names(after=10 * ALONE, talking={}) == frozenset()


def test_all_addresses_of_a_virtual_router():
    """It takes over all of them."""
    both = {VIP: "api", VIP6: "api", "192.0.2.101": "other"}
    assert names(keeper(), routers=both) == frozenset()
    assert names(keeper(), keeper(VIP6), routers=both) == {"api"}
