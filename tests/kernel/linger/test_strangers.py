"""Nodes that do not understand each other: both say so, and no connection is moved over it by mistake."""

import pytest
from support.linger.linger_field import (
    KEY,
    LingerNode,
    SteadyClients,
    config,
    moved,
    pair,
    wait_until_ready,
)
from support.network.namespaces import Segment
from support.processes.waiting import wait_until

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nft", root=True)]

_OTHER_KEY = "cd" * 32
_COUNT = 5


def _trouble(node: LingerNode) -> str:
    return str(node.status().get("trouble", ""))


@pytest.mark.promise(
    "docs/virtual-ips.md", "a node that is not heard is named, and a move over it asks for --force"
)
def test_a_key_that_differs_is_named_until_it_is_accepted():
    """On both nodes, with the reason; a move is refused, `leave` says what ends; a rotation ends nothing."""
    with Segment() as segment:
        one = LingerNode(segment.node("one"), "one", config(priority=150))
        two = LingerNode(segment.node("two"), "two", config(priority=100, linger={"key": _OTHER_KEY}))
        client = segment.node("client")
        with one, two:
            wait_until(lambda: one.kept().get("active"), what="one serves", timeout=30.0)
            for each, other in ((one, two), (two, one)):
                why = f"reports of {other.node.address} are signed with a key that this node does not accept"
                wait_until(lambda each=each, why=why: why in _trouble(each), what=f"{each.name} names it")
            refused = one.appliance.command("vip", "move", "api", check=False)
            assert (refused.returncode, one.state()) == (1, "active")
            assert f"connections of api would end: reports of {two.node.address}" in refused.stderr
            assert (
                "virtual IPs move without their connections"
                in one.appliance.command("status", check=False).stdout
            )
            accepting = config(priority=100, linger={"key": _OTHER_KEY, "accept": [KEY]})
            assert two.appliance.reload(accepting)["ok"]
            assert one.appliance.reload(config(priority=150, linger={"key": KEY, "accept": [_OTHER_KEY]}))[
                "ok"
            ]
            wait_until(lambda: not _trouble(one) and not _trouble(two), what="both understand each other")
            wait_until_ready([one, two])
            with SteadyClients(client, count=_COUNT, period=0.05) as clients:
                assert one.appliance.reload(config(priority=150, linger={"key": _OTHER_KEY}))["ok"]
                moved(one, two)
                seen = clients.end()
            assert (seen["ended"], seen["by"]) == (0, {"one": _COUNT})


@pytest.mark.slow("whole appliances on a segment of their own")
def test_a_closed_port_is_named_by_both():
    """The one that hears nothing, and the one that is not heard; a move can be forced."""
    with pair() as (_, one, two):
        two.node.run(["nft", "add", "table", "inet", "closed"])
        hook = "{ type filter hook input priority 0; policy accept; }"
        two.node.run(["nft", f"add chain inet closed input {hook}"])
        two.node.run(["nft", "add rule inet closed input udp dport 29446 drop"])
        serves = f"{one.node.address} serves api and sends no reports"
        wait_until(lambda: serves in _trouble(two), what="two hears nothing", timeout=60.0)
        deaf = f"{two.node.address} receives no reports from this node"
        wait_until(lambda: deaf in _trouble(one), what="one is not heard", timeout=60.0)
        assert one.appliance.command("vip", "move", "api", check=False).returncode == 1
        left = one.appliance.command("leave", "--json", check=False)
        assert f"Connections of virtual IPs end: {deaf}" in left.stderr
        wait_until(lambda: two.state() == "active", what="two serves")
