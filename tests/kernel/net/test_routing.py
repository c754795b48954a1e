"""Routes and rules of ours in a node, beside those of others."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from support.network.namespaces import INTERFACE, Node, Segment

from appliance.model.snapshot.virtual_router import VirtualRoute, VirtualRule
from appliance.net.netlink.netlink import Requests
from appliance.net.netlink.routing import Routing

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", root=True)]

PLAIN = VirtualRoute(to="10.1.0.0/16", via="192.0.2.254")
DEFAULT = VirtualRoute(to="0.0.0.0/0", via="198.51.100.1", interface=INTERFACE, table=1, onlink=True)
SIX = VirtualRoute(to="::/0", via="fd00::fe", interface=INTERFACE, table=70_000, metric=7)
LINK = VirtualRoute(to="10.2.0.0/16", interface=INTERFACE, source="192.0.2.1", table=1)
RULE = VirtualRule(source="192.0.2.1/32", table=1, priority=100)
RULE6 = VirtualRule(source="fd00::/64", to="fd01::/64", table=70_000, priority=100)
ALL = (PLAIN, DEFAULT, SIX, LINK, RULE, RULE6)


@pytest.fixture
def node() -> Iterator[Node]:
    """A node of its own, the first of its segment: 192.0.2.1."""
    with Segment() as segment:
        yield segment.node("only")


@pytest.fixture
def routing(node: Node) -> Iterator[Routing]:
    """What is tested, in the node."""
    with node.inside(), Requests() as requests:
        yield Routing(requests)


def contents(node: Node) -> set[str]:
    """Return all routes and rules of a node, as `ip` shows them."""
    shown = [
        node.ip(family, what, "show", *table)
        for family in ("-4", "-6")
        for what, table in (("route", ("table", "all")), ("rule", ()))
    ]
    return {line.strip() for each in shown for line in each.splitlines()}


def test_added_and_removed(routing: Routing, node: Node):
    """Routes and rules of both families come and go, and both can be repeated."""
    before = contents(node)
    assert routing.add(ALL) == routing.add(ALL)
    assert routing.leftovers() == ()
    shown = "\n".join(sorted(contents(node) - before))
    assert "10.1.0.0/16 via 192.0.2.254 dev eth0 proto 112" in shown
    assert "default via 198.51.100.1 dev eth0 table 1 proto 112 onlink" in shown
    assert "default via fd00::fe dev eth0 table 70000 proto 112 metric 7" in shown
    assert "10.2.0.0/16 dev eth0 table 1 proto 112 scope link src 192.0.2.1" in shown
    assert "100:\tfrom 192.0.2.1 lookup 1 proto 112" in shown
    assert "100:\tfrom fd00::/64 to fd01::/64 lookup 70000 proto 112" in shown
    assert len(contents(node) - before) == len(ALL)
    routing.remove(ALL)
    routing.remove(ALL)
    assert contents(node) == before


def test_others_stay(routing: Routing, node: Node):
    """What somebody else has put in our place is told and used, and never changed or removed."""
    node.batch("route add 10.1.0.0/16 via 192.0.2.253", "rule add from 192.0.2.1 table 1 priority 100")
    before = contents(node)
    for _ in range(2):
        added = routing.add([PLAIN, RULE])
        # The kernel has room for two rules that differ in their protocol alone.
        assert (set(added.foreign) - {RULE}, added.restored, added.failed) == ({PLAIN}, (), {})
    routing.remove([PLAIN, RULE])
    assert contents(node) == before
    routing.add([PLAIN])
    node.batch("route delete 10.1.0.0/16 via 192.0.2.253")
    assert routing.add([PLAIN]).foreign == ()
    routing.remove([PLAIN])


def test_one_that_is_not_ours_takes_no_other_with_it(routing: Routing, node: Node):
    """To IPv4 a request to remove a route without a metric is one for that network with any metric."""
    worse = VirtualRoute(to=PLAIN.to, via=PLAIN.via, metric=7)
    node.batch("route add 10.1.0.0/16 via 192.0.2.253")
    assert routing.add([PLAIN, worse]).foreign == (PLAIN,)
    routing.remove([PLAIN])
    assert "10.1.0.0/16 via 192.0.2.254 dev eth0 proto 112 metric 7" in contents(node)
    assert routing.add([PLAIN]).foreign == (PLAIN,)


def test_what_somebody_removes_comes_back(routing: Routing, node: Node):
    """It is told which ones were put back."""
    routing.add(ALL)
    node.ip("route", "delete", "10.1.0.0/16")
    node.ip("-6", "rule", "delete", "priority", "100")
    assert routing.add(ALL).restored == (PLAIN, RULE6)
    assert routing.add(ALL).restored == ()


def test_another_way_to_the_same_network(routing: Routing, node: Node):
    """A reload changes a route in its place; what is not wanted any more goes alone."""
    six = VirtualRoute(to="::/0", via="fd00::fd", interface=INTERFACE, table=70_000, metric=7)
    other = VirtualRoute(to="10.1.0.0/16", via="192.0.2.253")
    before = contents(node)
    routing.add(ALL)
    routing.add([other, six])
    routing.keep_only([other, six])
    shown = sorted(contents(node) - before)
    assert len(shown) == 2, shown
    assert shown[0].startswith("10.1.0.0/16 via 192.0.2.253")
    assert shown[1].startswith("default via fd00::fd")
    routing.keep_only(())
    assert contents(node) == before


def test_what_the_kernel_refuses_has_its_reason(routing: Routing):
    """An interface that is not there, a gateway that nobody reaches: the others are added all the same."""
    away = VirtualRoute(to="10.3.0.0/16", interface="eth9")
    unreachable = VirtualRoute(to="10.4.0.0/16", via="203.0.113.1")
    added = routing.add([away, unreachable, PLAIN])
    assert "device" in added.failed[away]
    assert "unreachable" in added.failed[unreachable]
    assert list(routing.present().values()) == [VirtualRoute(to=PLAIN.to)]


def test_left_by_a_killed_process(routing: Routing, node: Node):
    """What a process killed with -9 had is found by the next, which goes on with it or removes it."""
    before = contents(node)
    killed = (
        "import os\n"
        "from appliance.model.snapshot.virtual_router import VirtualRoute, VirtualRule\n"
        "from appliance.net.netlink.netlink import Requests\n"
        "from appliance.net.netlink.routing import Routing\n"
        f"Routing(Requests()).add({ALL!r})\n"
        "os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", killed], check=False).returncode == -9
    left = contents(node)
    assert len(left - before) == len(ALL)
    assert len(routing.leftovers()) == len(ALL)
    added = routing.add([PLAIN, RULE])
    assert (added.foreign, added.failed) == ((), {})
    assert contents(node) == left
    assert len(routing.leftovers()) == len(ALL) - 2
    routing.remove(routing.leftovers())
    assert len(json.loads(node.ip("-json", "route", "show", "proto", "112"))) == 1
    routing.remove([PLAIN, RULE])
    assert contents(node) == before


def test_only_ours_among_many(routing: Routing, node: Node):
    """Thousands of routes of a routing daemon are neither taken for ours nor in the way."""
    node.batch(
        *(
            f"route add 10.{high}.{low}.0/24 via 192.0.2.9 proto bird"
            for high in range(100, 110)
            for low in range(250)
        )
    )
    routing.add(ALL)
    assert len(routing.present()) == len(ALL)
    routing.remove(ALL)
    assert routing.present() == {}
