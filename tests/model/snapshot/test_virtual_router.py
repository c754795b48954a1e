"""Routes and rules: where the kernel has them, by which interface they lead, and how messages name them."""

import pytest

from appliance.model.snapshot.virtual_router import VirtualRoute, VirtualRule

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("one", "same"),
    [
        (VirtualRoute(to="10.1.0.0/16"), VirtualRoute(to="10.1.0.0/16", via="10.0.0.1", metric=0)),
        (VirtualRoute(to="::/0", table=254), VirtualRoute(to="::/0", interface="eth1", metric=1024)),
    ],
)
def test_what_has_one_place(one: VirtualRoute, same: VirtualRoute) -> None:
    """Network, table and metric are the place; a metric that is not said is the kernel's own."""
    assert one.place == same.place
    assert one.place != VirtualRoute(to=one.to, table=1).place
    assert one.place != VirtualRoute(to=one.to, metric=7).place


@pytest.mark.parametrize(
    ("route", "interface"),
    [
        (VirtualRoute(to="10.1.0.0/16"), "eth0"),
        (VirtualRoute(to="10.1.0.0/16", interface="eth1"), "eth1"),
        (VirtualRoute(to="10.1.0.0/16", via="10.0.0.1"), None),
        (VirtualRoute(to="10.1.0.0/16", via="10.0.0.1", onlink=True), "eth0"),
        (VirtualRoute(to="::/0", via="fe80::1"), "eth0"),
    ],
)
def test_its_interface(route: VirtualRoute, interface: str | None) -> None:
    """It is that of the virtual router, but where one is said, or the kernel can find the gateway."""
    assert route.on("eth0").interface == interface


def test_names() -> None:
    """They are written as `ip route` and `ip rule` do it, and say nothing that goes without saying."""
    assert str(VirtualRoute(to="10.1.0.0/16", via="10.0.0.1")) == "10.1.0.0/16 via 10.0.0.1"
    full = VirtualRoute(to="::/0", via="fe80::1", interface="eth1", table=7, metric=5)
    assert str(full) == "::/0 via fe80::1 dev eth1 table 7 metric 5"
    assert (
        str(VirtualRule(source="10.0.0.1/32", table=1, priority=5)) == "from 10.0.0.1/32 table 1 priority 5"
    )
    to = VirtualRule(to="10.0.0.0/8", table=1, priority=5)
    assert str(to) == "from all to 10.0.0.0/8 table 1 priority 5"
