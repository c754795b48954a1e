"""Virtual IPs that move with their connections: whole appliances, real clients, the kernel's own rules.

`E2E_FULL=1` holds 1,000 connections, and has a node die.
"""

import contextlib
import json
import os
import re
import signal
import socket
import struct
import sys
from contextlib import ExitStack

import pytest
from support.linger.linger_field import (
    COUNT,
    PERIOD,
    PORT,
    VIP,
    VIP6,
    LingerNode,
    SteadyClients,
    config,
    established,
    moved,
    pair,
    wait_until_ready,
    who_answers,
)
from support.network.namespaces import INTERFACE, Node, Segment
from support.processes.processes import kill
from support.processes.waiting import wait_until
from support.vrrp.informed import wait_until_informed
from support.vrrp.keepalived import Instance, Keepalived

from appliance.net.netlink.conntrack import Conntrack

_SLOW = pytest.mark.slow("the same with other addresses")
_FULL = pytest.mark.full("the same with other addresses")

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nft", root=True)]


@pytest.mark.promise("kernel", "packets led by MAC (nftables dup)")
@pytest.mark.promise("program", "linger")
@pytest.mark.parametrize(
    ("vip", "virtual_mac"),
    [
        pytest.param(VIP, False, id="IPv4"),
        pytest.param(VIP6, False, id="IPv6", marks=_FULL),
        pytest.param(VIP, True, id="IPv4-virtual-MAC", marks=_FULL),
        pytest.param(VIP6, True, id="IPv6-virtual-MAC", marks=_SLOW),
    ],
)
def test_moves_there_and_back_end_no_connection(vip: str, virtual_mac: bool):  # noqa: FBT001  # a value of a key
    """Connections stay on the node that has them, both ways at once; new ones reach the new node."""
    with pair(vip=vip, router={"virtual_mac": virtual_mac}) as (client, one, two):
        with SteadyClients(client, count=COUNT, period=PERIOD, vip=vip) as first:
            moved(one, two, vip)
            wait_until(lambda: one.kept(vip).get("connections") == COUNT, what="one keeps them")
            assert who_answers(client, vip) == "two"
            assert not one.node.holds(vip, INTERFACE)
            assert one.node.holds(vip, "lo")
            with SteadyClients(client, count=COUNT, period=PERIOD, vip=vip) as second:
                two.appliance.command("vip", "reclaim", "api")
                one.appliance.command("vip", "reclaim", "api")
                wait_until(lambda: one.kept(vip).get("active"), what="one serves again")
                wait_until(lambda: two.kept(vip).get("connections") == COUNT, what="two keeps its own")
                assert who_answers(client, vip) == "one"
                seen = [each.end() for each in (first, second)]
        sys.stderr.write(f"{seen}\n")
        assert [(each["ended"], each["by"]) for each in seen] == [(0, {"one": COUNT}), (0, {"two": COUNT})]
        wait_until(lambda: not two.kept(vip), what="two gives the address up", timeout=30.0)
        assert not two.node.holds(vip, "lo")
        wait_until(lambda: not one.others(vip), what="one leads nothing there")


def test_a_node_that_joins_takes_over_as_soon_as_it_is_informed():
    """The node of the higher priority starts last; connections of the other one go on."""
    with Segment() as segment:
        client, first, second = (segment.node(name) for name in ("client", "one", "two"))
        with LingerNode(second, "two", config(priority=100)) as two:
            wait_until(lambda: two.state() == "active", what="two is active", timeout=30.0)
            with (
                SteadyClients(client, count=COUNT, period=PERIOD) as clients,
                LingerNode(first, "one", config(priority=150)) as one,
            ):
                assert wait_until_informed(one.appliance) > 1
                wait_until(lambda: one.state() == "active", what="one is active", timeout=30.0)
                clients.ask()
                assert clients.end()["ended"] == 0


@pytest.mark.slow("whole appliances on a segment of their own")
def test_three_nodes_that_take_over_from_each_other():
    """By preemption: the last leads what it does not have to the second, and that one to the first."""
    with Segment() as segment, ExitStack() as stack:
        names = ("one", "two", "three")
        nodes = [segment.node(name) for name in names]
        client = segment.node("client")
        running: list[LingerNode] = []
        clients: list[SteadyClients] = []
        for node, name, priority in zip(nodes, names, (100, 150, 200), strict=True):
            latest = stack.enter_context(LingerNode(node, name, config(priority=priority)))
            running.append(latest)
            wait_until(lambda: latest.kept().get("active"), what=f"{latest.name} serves", timeout=30.0)  # noqa: B023  # called at once
            wait_until_ready(running)
            assert who_answers(client) == name
            clients.append(stack.enter_context(SteadyClients(client, count=COUNT, period=PERIOD)))
        for each in running[:2]:
            wait_until(lambda: each.kept().get("connections") == COUNT, what=f"{each.name} keeps its own")  # noqa: B023  # called at once
        # Never back: the one that leads it here serves already, perhaps, and has not been heard since.
        one, two, three = nodes
        wait_until(lambda: _led_on(by=three, of=one) == [two.address], what="one's packets go to two")
        wait_until(lambda: _led_on(by=three, of=two) == [one.address], what="two's packets go to one")
        seen = [each.end() for each in clients]
        sys.stderr.write(f"{seen}\n")
        assert [(each["ended"], each["by"]) for each in seen] == [(0, {name: COUNT}) for name in names]


def _led_on(*, by: Node, of: Node) -> list[str]:
    """Return where the kernel of a node leads what another one has led to it."""
    rules = by.run(["nft", "list", "map", "ip", "lb_linger", "onward"])
    return re.findall(rf"{of.mac} \. {re.escape(VIP)} timeout \S+ expires \S+ : ([\d.]+)", rules)


@pytest.mark.slow("whole appliances on a segment of their own")
def test_a_node_is_left_when_it_is_empty():
    """`leave --wait` returns when its connections have ended, and says how many are left until then."""
    with pair() as (client, one, two):
        with SteadyClients(client, count=COUNT, period=PERIOD) as clients:
            left = one.appliance.command("leave", "--wait", "--timeout", "0", "--json", check=False)
            assert left.returncode == 1
            wait_until(lambda: two.kept().get("active"), what="two serves")
            wait_until(lambda: one.kept().get("connections") == COUNT, what="one keeps them")
            shown = two.appliance.command("vip", "status", check=False).stdout
            assert f"{one.node.address} " in shown
            assert "connections of" in shown
            left = one.appliance.command("leave", "--wait", "--timeout", "0", "--json", check=False)
            assert json.loads(left.stdout)["connections"] == COUNT
            seen = clients.end()
        assert (seen["ended"], seen["by"]) == (0, {"one": COUNT})
        one.appliance.command("leave", "--wait", "--timeout", "40")
        assert not one.kept()
        assert not one.node.holds(VIP, "lo")


@pytest.mark.slow("whole appliances on a segment of their own")
def test_a_port_that_a_client_uses_again():
    """What a node remembers of a connection that has ended is not taken for the next one of the same port."""
    with pair() as (client, one, two):
        with client.inside():
            first = socket.create_connection((VIP, PORT), timeout=10)
        port = first.getsockname()[1]
        assert first.recv(100) == b"one\n"
        first.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        first.close()  # by a reset: the port is free at once
        wait_until(lambda: _remembered(one, port) <= 1, what="one forgets the connection soon")
        moved(one, two)
        with client.inside():
            second = socket.create_connection((VIP, PORT), timeout=10, source_address=("", port))
        with second:
            assert second.recv(100) == b"two\n"
            wait_until(lambda: _remembered(one, port) < 0, what="one has forgotten it")
            one.appliance.command("vip", "reclaim", "api")
            wait_until(lambda: two.kept().get("active") is False, what="one serves again")
            second.sendall(b".")
            assert second.recv(100) == b"two\n"


def _remembered(node: LingerNode, port: int) -> int:
    """Return for how many seconds a node's kernel knows a client's connection by its port, -1 for none."""
    with node.node.inside(), contextlib.closing(Conntrack()) as tracked:
        found = [each for each in tracked.connections(0, 0) if each.client.source_port == port]
    return max((each.remaining or 0 for each in found), default=-1)


@pytest.mark.promise("survives", "linger")
@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=_SLOW)])
def test_a_restart_of_the_program_ends_no_connection(number: signal.Signals):
    """Killed on either node, or hung, it comes back, and the kernel has gone on meanwhile."""
    with pair() as (client, one, two), SteadyClients(client, count=COUNT, period=PERIOD) as clients:
        moved(one, two)
        wait_until(lambda: one.kept().get("connections") == COUNT, what="one keeps them")
        for each in (two, one):
            pid = each.appliance.program_pid("linger")
            os.kill(pid, number)
            each.appliance.wait_for_restart("linger", pid)
            wait_until(lambda: one.kept().get("connections") == COUNT, what="one keeps them still")
            wait_until(lambda: one.node.address in two.others(), what="two hears of it")
        seen = clients.end()
        assert (seen["ended"], seen["by"]) == (0, {"one": COUNT})
        wait_until(lambda: not one.kept(), what="one gives the address up", timeout=30.0)


@pytest.mark.slow("whole appliances on a segment of their own")
@pytest.mark.parametrize("killed", [pytest.param("two", marks=_FULL), "three"])
def test_two_moves_while_the_program_is_away(killed: str):
    """A node that does not know yet where a connection is drops what another one has led to it: no reset."""
    with Segment() as segment, ExitStack() as stack:
        client = segment.node("client")
        running = [
            stack.enter_context(LingerNode(segment.node(name), name, config(priority=priority)))
            for name, priority in (("one", 150), ("two", 140), ("three", 130))
        ]
        one, two, three = running
        wait_until(lambda: one.kept().get("active"), what="one serves", timeout=30.0)
        wait_until_ready(running)
        clients = stack.enter_context(SteadyClients(client, count=COUNT, period=PERIOD))
        away = {each.name: each for each in running}[killed]
        pid = away.appliance.kill("linger")
        one.appliance.command("leave")  # so that it does not come back
        wait_until(lambda: two.state() == "active", what="two serves")
        two.move(forced=True)
        wait_until(lambda: three.state() == "active", what="three serves")
        away.appliance.wait_for_restart("linger", pid)
        wait_until(lambda: who_answers(client) == "three", what="three answers")
        clients.ask()
        seen = clients.end()
        assert (seen["ended"], seen["by"]) == (0, {"one": COUNT})


@pytest.mark.slow("whole appliances on a segment of their own")
@pytest.mark.skipif(not os.environ.get("E2E_FULL"), reason="make test-full: clients send again after long")
def test_a_node_that_dies_is_told_to_its_clients():
    """With the node that had them gone, its connections are reset as they would be without `linger`."""
    with pair() as (client, one, two):
        with SteadyClients(client, count=COUNT, period=PERIOD) as clients:
            moved(one, two)
            wait_until(lambda: one.kept().get("connections") == COUNT, what="one keeps them")
            one.node.isolate()
            wait_until(lambda: not two.others(), what="two has noticed", timeout=60.0)
            wait_until(lambda: who_answers(client) == "two", what="two serves")
            # Each is told when the client's kernel sends again, which it does at growing intervals.
            wait_until(lambda: not established(client), what="all are reset", timeout=120.0)
            seen = clients.end()
            one.node.rejoin()
        assert seen["ended"] == COUNT


@pytest.mark.slow("whole appliances on a segment of their own")
def test_connections_from_before_the_rules_are_our_own():
    """A node that is told of `linger` while it serves does not take its own connections for another's."""
    with pair() as (client, one, two), SteadyClients(client, count=1, period=PERIOD) as clients:
        moved(one, two)
        # Silent ones: of what is said meanwhile the kernel learns by itself that it is ours.
        with SteadyClients(client, count=COUNT, period=3600.0) as own:
            before = two.appliance.kill("linger")
            two.node.run(["nft", "flush", "ruleset"])
            with two.node.inside():
                tracked = Conntrack()
            tracked.delete(0, 0)  # all: as if the kernel had not tracked them
            tracked.close()
            two.appliance.wait_for_restart("linger", before)
            wait_until(lambda: f"{VIP} timeout" in two.nft(), what="two leads packets")
            wait_until(lambda: f": {one.node.address}" in two.nft(), what="two leads them to one")
            own.ask()
            seen = own.end()
        assert (seen["ended"], seen["by"]) == (0, {"two": COUNT})
        clients.end()


@pytest.mark.slow("whole appliances on a segment of their own")
@pytest.mark.parametrize(
    ("number", "drain"), [(signal.SIGTERM, "60s"), (signal.SIGUSR1, "1s")], ids=["TERM", "USR1"]
)
def test_a_stop_waits_for_connections(number: signal.Signals, drain: str):
    """A node that is told to stop serves what it has, as long as it may; another one has the address."""
    with pair(defaults={"drain": drain}) as (client, one, two):
        with SteadyClients(client, count=COUNT, period=PERIOD) as clients:
            one.appliance.signal(number)
            wait_until(lambda: two.kept().get("active"), what="two serves")
            wait_until(lambda: one.kept().get("connections") == COUNT, what="one keeps them")
            assert who_answers(client) == "two"
            assert one.appliance.is_running()
            seen = clients.end()
        assert (seen["ended"], seen["by"]) == (0, {"one": COUNT})
        assert one.appliance.wait(patience=60.0) == 0
        assert not one.node.holds(VIP, "lo")
        assert "lb_linger" not in one.nft()


@pytest.mark.slow("whole appliances on a segment of their own")
@pytest.mark.needs("keepalived")
def test_beside_keepalived_nothing_is_kept():
    """A successor that does not speak this resets connections, as ever; the address is given up soon."""
    with Segment() as segment, ExitStack() as stack:
        node, other, client = (segment.node(name) for name in ("one", "two", "client"))
        one = stack.enter_context(LingerNode(node, "one", config(priority=150)))
        wait_until(lambda: one.kept().get("active"), what="one serves", timeout=30.0)
        stack.enter_context(Keepalived(other, Instance(priority=100, advert=0.2))).wait_for("BACKUP")
        with SteadyClients(client, count=COUNT, period=PERIOD) as clients:
            one.move(forced=True)
            wait_until(lambda: other.holds(VIP), what="keepalived has the address")
            wait_until(lambda: not established(client), what="all have ended", timeout=120.0)
            seen = clients.end()
        assert seen["ended"] == COUNT
        wait_until(lambda: not one.kept(), what="one gives the address up", timeout=40.0)
        assert "no-successor" in one.appliance.log()


@pytest.mark.slow("whole appliances on a segment of their own")
def test_what_a_kill_of_everything_left_is_removed():
    """Started again without `linger`, the next appliance takes the address off `lo`."""
    with pair() as (_, one, two):
        one.move()
        wait_until(lambda: two.kept().get("active"), what="two serves")
        assert one.node.holds(VIP, "lo")
        one.appliance.signal(signal.SIGKILL)
        one.appliance.wait(patience=10.0)
        for pid in one.appliance.processes():
            kill(pid)
        one.appliance.remove_sockets()
        one.appliance.write({key: each for key, each in one.appliance.config.items() if key != "linger"})
        with one.node.inside():
            one.appliance.start()
        wait_until(lambda: not one.node.holds(VIP, "lo"), what="it is gone")
