"""Routes and rules of a virtual IP: of ours alone in a node, and beside Debian's keepalived by one file."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pytest
from support.network.namespaces import Node, Segment
from support.processes.log_lines import logged
from support.processes.waiting import wait_until
from support.translation.keepalived_files import translated
from support.vrrp.keepalived import Keepalived
from support.vrrp.simulated_vrrp import SimulatedLog
from support.vrrp.vrrp_field import VIP, AddressMonitor, Field, agreed
from support.vrrp.vrrp_node import VrrpNode, router

from appliance.model.document.document import read
from appliance.model.snapshot.virtual_router import VirtualRoute, VirtualRouter, VirtualRule
from appliance.net.netlink import vrrp_leftovers
from appliance.translation.combined_files import load_together

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nsenter", "tcpdump", root=True)]

GATEWAY: Final = VirtualRoute(to="10.1.0.0/16", via="192.0.2.254", source=VIP)
SIX: Final = VirtualRoute(to="::/0", via="fd00::fe", table=70_000)
RULE: Final = VirtualRule(source=f"{VIP}/32", table=70_000, priority=100)
API: Final = router(routes=(GATEWAY, SIX), rules=(RULE,))
ALL: Final = (GATEWAY, SIX, RULE)


@pytest.fixture
def node() -> Iterator[Node]:
    """A node of its own."""
    with Segment() as segment:
        yield segment.node("only")


def routed(node: Node, protocol: str = "112") -> set[str]:
    """Return the routes and rules of a protocol, without it and without spaces at the end."""
    mark = f" proto {protocol}"
    routes = [
        line
        for family in ("-4", "-6")
        for line in node.ip(family, "route", "show", "table", "all", "proto", protocol).splitlines()
    ]
    rules = [
        line.replace(mark, "")
        for family in ("-4", "-6")
        for line in node.ip(family, "rule").splitlines()
        if mark in line
    ]
    return {" ".join(each.replace(mark, "").split()) for each in (*routes, *rules)}


def restored(ours: VrrpNode) -> set[object]:
    """Return what the log says that it has put back."""
    told = set[object]()
    for each in logged(ours.log(), "route-restored"):
        assert isinstance(each["routes"], list)
        told.update(each["routes"])
    return told


@pytest.mark.promise("docs/virtual-ips.md", "routes and rules move with the addresses")
def test_they_move_with_the_addresses(ground: Field) -> None:
    """The active node has them, and no other; a stop leaves none behind."""
    with agreed(ground, routes=API.routes, rules=API.rules) as (one, two):
        there = routed(ground.one)
        assert len(there) == len(ALL)
        assert not routed(ground.two)
        assert one.stop() == 0
        assert not routed(ground.one)
        two.wait_for("active")
        assert routed(ground.two) == there


def test_what_a_killed_one_left_is_removed(ground: Field) -> None:
    """A node that comes back as backup has no route left of its time as the active one, and says so."""
    with agreed(ground, routes=API.routes, rules=API.rules, preempt=False) as (one, two):
        one.kill()
        assert len(routed(ground.one)) == len(ALL)
        two.wait_for("active")
        one.start()
        one.wait_for("backup")
        wait_until(lambda: not routed(ground.one), what="the leftovers are gone")
        left = {GATEWAY.to, f"{SIX.to} table {SIX.table}", str(RULE)}
        wait_until(
            lambda: (
                left == {each["route"] for each in logged(one.log(), "leftover-removed") if "route" in each}
            ),
            what="each is told",
        )


def test_one_that_was_killed_goes_on_with_them(node: Node) -> None:
    """Started again at once, it takes its routes and rules over: none is touched on the way."""
    with VrrpNode(node, API) as ours:
        ours.wait_for("active")
        before = routed(node)
        ours.kill()
        assert routed(node) == before
        ours.start()
        ours.wait_for("active")
        assert routed(node) == before
        assert ours.status()["route_troubles"] == []
        assert not logged(ours.log(), "route-foreign", "route-refused")
        assert ours.stop() == 0
        assert not routed(node)


def test_where_no_vrrp_is_to_run_none_stays(node: Node) -> None:
    """After a reload without virtual IPs, or at a start without, what a killed one left is removed."""
    with VrrpNode(node, API) as ours:
        ours.wait_for("active")
        with node.inside():
            assert not vrrp_leftovers.remove_all(ours.paths, SimulatedLog())
        assert len(routed(node)) == len(ALL)
        ours.kill()
        log = SimulatedLog()
        with node.inside():
            assert not vrrp_leftovers.remove_all(ours.paths, log)
        assert (routed(node), node.holds(VIP)) == (set(), False)
        assert len(log.fields("leftover-removed")) == len(ALL) + 1


def test_what_somebody_removes_is_put_back(node: Node) -> None:
    """The log says which routes were gone."""
    with VrrpNode(node, API) as ours:
        ours.wait_for("active")
        before = routed(node)
        node.batch("route delete 10.1.0.0/16", "rule delete priority 100")
        wait_until(lambda: routed(node) == before, what="they are back")
        wait_until(
            lambda: restored(ours) == {str(GATEWAY), str(RULE)}, what="the log names them, and no others"
        )


@pytest.mark.promise("docs/virtual-ips.md", "a route of somebody else stays")
def test_one_of_somebody_else_is_neither_taken_nor_removed(node: Node) -> None:
    """It is told in log and status, outlives a stop, and is ours when somebody has removed it."""
    node.batch("route add 10.1.0.0/16 via 192.0.2.253")
    with VrrpNode(node, API) as ours:
        ours.wait_for("active")
        (trouble,) = ours.status()["route_troubles"]
        assert trouble.startswith(f"{GATEWAY}: another program")
        assert "via 192.0.2.253" in node.ip("route", "show", "10.1.0.0/16")
        node.batch("route delete 10.1.0.0/16")
        wait_until(lambda: not ours.status()["route_troubles"], what="ours has its place")
        assert "via 192.0.2.254" in node.ip("route", "show", "10.1.0.0/16")
        node.batch("route replace 10.1.0.0/16 via 192.0.2.253")
        assert ours.stop() == 0
        assert "via 192.0.2.253" in node.ip("route", "show", "10.1.0.0/16")
        assert len(logged(ours.log(), "route-foreign")) == 1


def test_what_the_kernel_refuses_is_told_and_the_address_is_served(node: Node) -> None:
    """A gateway that nobody reaches is a trouble until somebody does."""
    away = VirtualRoute(to="10.3.0.0/16", via="203.0.113.1")
    with VrrpNode(node, replace(API, routes=(away, GATEWAY))) as ours:
        ours.wait_for("active")
        assert node.holds(VIP)
        assert ours.status()["route_troubles"] == [f"{away}: Network is unreachable"]
        assert "10.1.0.0/16" in node.ip("route")
        node.ip("address", "add", "203.0.113.7/24", "dev", "eth0")
        wait_until(lambda: not ours.status()["route_troubles"], what="the gateway is reached")
        assert "10.3.0.0/16" in node.ip("route")


def test_a_reload_changes_them_and_no_address(node: Node) -> None:
    """Changed, removed and new ones are right when the reload is done; the address never goes."""
    other = replace(GATEWAY, via="192.0.2.253")
    with VrrpNode(node, API) as ours, AddressMonitor(node) as monitor:
        ours.wait_for("active")
        ours.reload(replace(API, routes=(other,), rules=()))
        assert routed(node) == {f"10.1.0.0/16 via 192.0.2.253 dev eth0 src {VIP}"}
        ours.reload(replace(API, routes=(), rules=(RULE,)))
        assert routed(node) == {f"100: from {VIP} lookup 70000"}
        ours.reload(API)
        assert len(routed(node)) == len(ALL)
        assert monitor.went(VIP) == 0


FILE: Final = """
vrrp_instance four {{
    interface eth0
    state BACKUP
    virtual_router_id 42
    priority {priority}
    advert_int 1
    virtual_ipaddress {{ 192.0.2.100/24 }}
    virtual_routes {{
        192.0.2.0/24 dev eth0 src 192.0.2.100 scope link table 1
        default via 192.0.2.254 dev eth0 onlink table 1
        10.5.0.0/16 via 192.0.2.254 metric 7
        src 192.0.2.100 to 10.6.0.0/16 via 198.51.100.1 dev eth0 onlink
        fd00:5::/64 via fd00::fe dev eth0
    }}
    virtual_rules {{
        from 192.0.2.100/32 table 1 priority 100
        to 10.7.0.0/16 table 1
        from 10.8.0.0/16 to 10.9.0.0/16 lookup main preference 300
        from fd00::100 table 1
    }}
}}
vrrp_instance six {{
    interface eth0
    state BACKUP
    virtual_router_id 43
    version 3
    priority {priority}
    advert_int 1
    virtual_ipaddress {{ fd00::100/64 }}
    virtual_routes {{
        default via fd00::fe dev eth0 table 2
        fd00:6::/64 dev eth0 src fd00::100 metric 5
    }}
    virtual_rules {{
        from fd00::100 table 2 priority 100
        to fd00:7::/64 table 2
    }}
}}
"""


def routers(text: str) -> tuple[VirtualRouter, ...]:
    """Return the virtual routers that we make of a keepalived.conf."""
    loaded = load_together(read("{}"), [translated(text)], source="appliance.yaml", number=1)
    assert loaded.snapshot is not None, loaded.errors
    return loaded.snapshot.virtual_routers


@pytest.mark.promise("docs/foreign-files.md", "the same routes and rules as keepalived's, by one file")
@pytest.mark.slow("real timers of keepalived")
@pytest.mark.needs("keepalived")
def test_one_file_for_keepalived_and_for_us(ground: Field) -> None:
    """Who is active has the same routes and rules in both versions of IP, and who is backup has none."""
    names = ("four", "six")
    with Keepalived(ground.one, head=FILE.format(priority=150)) as theirs:
        for name in names:
            theirs.wait_for("MASTER", name)
        wait_until(lambda: len(routed(ground.one, "keepalived")) == 13, what="keepalived has them all")
        there = routed(ground.one, "keepalived")
        with VrrpNode(ground.two, *routers(FILE.format(priority=100))) as ours:
            for name in names:
                ours.wait_for("backup", name)
            assert not routed(ground.two)
            theirs.stop()
            for name in names:
                ours.wait_for("active", name)
            assert routed(ground.two) == there
            assert [ours.status(name)["route_troubles"] for name in names] == [[], []]
            theirs.start()
            for name in names:
                theirs.wait_for("MASTER", name)
                ours.wait_for("backup", name)
            assert not routed(ground.two)
