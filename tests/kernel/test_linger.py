"""Virtual IPs that move with their connections: whole appliances, real clients, the kernel's own rules.

`E2E_FULL=1` holds 1,000 connections, and has a node die.
"""

import contextlib
import json
import os
import signal
import socket
import struct
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.network import greeter
from support.network.namespaces import INTERFACE, Node, Segment
from support.peers.keepalived import Instance, Keepalived
from support.processes.processes import kill
from support.processes.waiting import wait_until
from support.programs.linger_field import (
    KEY,
    PORT,
    VIP,
    VIP6,
    LingerNode,
    SteadyClients,
    config,
    pair,
    wait_until_ready,
    who_answers,
)

from appliance.net.netlink.conntrack import Conntrack

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nft", root=True)]

_COUNT = 1000 if os.environ.get("E2E_FULL") else 50
_PERIOD = 0.5 if os.environ.get("E2E_FULL") else 0.05


def _moved(source: LingerNode, target: LingerNode, vip: str = VIP) -> None:
    """Move the virtual IP, and wait until both know."""
    source.move()
    wait_until(lambda: target.kept(vip).get("active"), what=f"{target.name} serves")
    wait_until(lambda: source.kept(vip).get("active") is False, what=f"{source.name} has left")


def _established(client: Node) -> int:
    """Return how many connections the client has."""
    return client.run(["ss", "-tnH", "state", "established"]).count("\n")


@pytest.mark.parametrize("virtual_mac", [False, True], ids=["own", "virtual"])
@pytest.mark.parametrize("vip", [VIP, VIP6])
def test_moves_there_and_back_end_no_connection(vip: str, virtual_mac: bool):  # noqa: FBT001  # a value of a key
    """Connections stay on the node that has them, both ways at once; new ones reach the new node."""
    with pair(vip=vip, router={"virtual_mac": virtual_mac}) as (client, one, two):
        with SteadyClients(client, count=_COUNT, period=_PERIOD, vip=vip) as first:
            _moved(one, two, vip)
            wait_until(lambda: one.kept(vip).get("connections") == _COUNT, what="one keeps them")
            assert who_answers(client, vip) == "two"
            assert not one.node.holds(vip, INTERFACE)
            assert one.node.holds(vip, "lo")
            with SteadyClients(client, count=_COUNT, period=_PERIOD, vip=vip) as second:
                two.appliance.command("vip", "reclaim", "api")
                one.appliance.command("vip", "reclaim", "api")
                wait_until(lambda: one.kept(vip).get("active"), what="one serves again")
                wait_until(lambda: two.kept(vip).get("connections") == _COUNT, what="two keeps its own")
                assert who_answers(client, vip) == "one"
                seen = [each.end() for each in (first, second)]
        sys.stderr.write(f"{seen}\n")
        assert [(each["ended"], each["by"]) for each in seen] == [(0, {"one": _COUNT}), (0, {"two": _COUNT})]
        wait_until(lambda: not two.kept(vip), what="two gives the address up", timeout=30.0)
        assert not two.node.holds(vip, "lo")
        wait_until(lambda: not one.others(vip), what="one leads nothing there")


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
            clients.append(stack.enter_context(SteadyClients(client, count=_COUNT, period=_PERIOD)))
        for each in running[:2]:
            wait_until(lambda: each.kept().get("connections") == _COUNT, what=f"{each.name} keeps its own")  # noqa: B023  # called at once
        seen = [each.end() for each in clients]
        sys.stderr.write(f"{seen}\n")
        assert [(each["ended"], each["by"]) for each in seen] == [(0, {name: _COUNT}) for name in names]


def test_a_node_is_left_when_it_is_empty():
    """`leave --wait` returns when its connections have ended, and says how many are left until then."""
    with pair() as (client, one, two):
        with SteadyClients(client, count=_COUNT, period=_PERIOD) as clients:
            left = one.appliance.command("leave", "--wait", "--timeout", "0", "--json", check=False)
            assert left.returncode == 1
            wait_until(lambda: two.kept().get("active"), what="two serves")
            wait_until(lambda: one.kept().get("connections") == _COUNT, what="one keeps them")
            shown = two.appliance.command("vip", "status", check=False).stdout
            assert f"{one.node.address} " in shown
            assert "connections of" in shown
            left = one.appliance.command("leave", "--wait", "--timeout", "0", "--json", check=False)
            assert json.loads(left.stdout)["connections"] == _COUNT
            seen = clients.end()
        assert (seen["ended"], seen["by"]) == (0, {"one": _COUNT})
        one.appliance.command("leave", "--wait", "--timeout", "40")
        assert not one.kept()
        assert not one.node.holds(VIP, "lo")


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
        _moved(one, two)
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


def test_a_restart_of_the_program_ends_no_connection():
    """Killed on either node it comes back, and the kernel has gone on meanwhile."""
    with pair() as (client, one, two), SteadyClients(client, count=_COUNT, period=_PERIOD) as clients:
        _moved(one, two)
        wait_until(lambda: one.kept().get("connections") == _COUNT, what="one keeps them")
        for each in (two, one):
            pid = each.appliance.kill("linger")
            each.appliance.wait_for_restart("linger", pid)
            wait_until(lambda: one.kept().get("connections") == _COUNT, what="one keeps them still")
            wait_until(lambda: one.node.address in two.others(), what="two hears of it")
        seen = clients.end()
        assert (seen["ended"], seen["by"]) == (0, {"one": _COUNT})
        wait_until(lambda: not one.kept(), what="one gives the address up", timeout=30.0)


@pytest.mark.skipif(not os.environ.get("E2E_FULL"), reason="make test-full: clients send again after long")
def test_a_node_that_dies_is_told_to_its_clients():
    """With the node that had them gone, its connections are reset as they would be without `linger`."""
    with pair() as (client, one, two):
        with SteadyClients(client, count=_COUNT, period=_PERIOD) as clients:
            _moved(one, two)
            wait_until(lambda: one.kept().get("connections") == _COUNT, what="one keeps them")
            one.node.isolate()
            wait_until(lambda: not two.others(), what="two has noticed", timeout=60.0)
            wait_until(lambda: who_answers(client) == "two", what="two serves")
            # Each is told when the client's kernel sends again, which it does at growing intervals.
            wait_until(lambda: not _established(client), what="all are reset", timeout=120.0)
            seen = clients.end()
            one.node.rejoin()
        assert seen["ended"] == _COUNT


def test_connections_from_before_the_rules_are_our_own():
    """A node that is told of `linger` while it serves does not take its own connections for another's."""
    with pair() as (client, one, two), SteadyClients(client, count=1, period=_PERIOD) as clients:
        _moved(one, two)
        # Silent ones: of what is said meanwhile the kernel learns by itself that it is ours.
        with SteadyClients(client, count=_COUNT, period=3600.0) as own:
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
        assert (seen["ended"], seen["by"]) == (0, {"two": _COUNT})
        clients.end()


@pytest.mark.parametrize(
    ("number", "drain"), [(signal.SIGTERM, "60s"), (signal.SIGUSR1, "1s")], ids=["TERM", "USR1"]
)
def test_a_stop_waits_for_connections(number: signal.Signals, drain: str):
    """A node that is told to stop serves what it has, as long as it may; another one has the address."""
    with pair(defaults={"drain": drain}) as (client, one, two):
        with SteadyClients(client, count=_COUNT, period=_PERIOD) as clients:
            one.appliance.signal(number)
            wait_until(lambda: two.kept().get("active"), what="two serves")
            wait_until(lambda: one.kept().get("connections") == _COUNT, what="one keeps them")
            assert who_answers(client) == "two"
            assert one.appliance.is_running()
            seen = clients.end()
        assert (seen["ended"], seen["by"]) == (0, {"one": _COUNT})
        assert one.appliance.wait(patience=60.0) == 0
        assert not one.node.holds(VIP, "lo")
        assert "lb_linger" not in one.nft()


def test_a_node_that_comes_back_waits_until_it_knows():
    """It has the higher priority, and takes nothing over while its `linger` cannot hear the active node."""
    with pair() as (client, one, two), ExitStack() as stack:
        one.appliance.stop(patience=60.0)
        wait_until(lambda: two.kept().get("active"), what="two serves")
        clients = stack.enter_context(SteadyClients(client, count=_COUNT, period=_PERIOD))
        with one.node.inside():
            taken = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            taken.bind(("0.0.0.0", 29446))
            one.appliance.start()
        wait_until(lambda: "29446" in str(one.status().get("trouble")), what="it says why it hears nobody")
        wait_until(lambda: "takes over from nobody" in one.shown(), what="it waits, and says so")
        assert one.state() == "backup"
        taken.close()
        wait_until(lambda: one.kept().get("active"), what="one serves again", timeout=30.0)
        wait_until(lambda: two.kept().get("connections") == _COUNT, what="two keeps its own")
        seen = clients.end()
        assert (seen["ended"], seen["by"]) == (0, {"two": _COUNT})


def test_a_peer_behind_a_router_is_refused():
    """A reload that brings one is refused; a start with one goes on, and says what ends with a move."""
    far = {"peers": ["198.51.100.2"]}
    with Segment() as segment, LingerNode(segment.node("one"), "one", config(priority=150)) as one:
        wait_until(lambda: one.kept().get("active"), what="it serves", timeout=30.0)
        answer = one.appliance.reload(config(priority=150, router=far))
        assert "198.51.100.2 is not on the segment of eth0" in str(answer["errors"])
        one.appliance.stop(patience=60.0)
        with one.node.inside():
            one.appliance.start()
        wait_until(lambda: "198.51.100.2 is not on" in str(one.status().get("trouble")), what="it says so")
        wait_until(lambda: one.kept().get("active"), what="it serves", timeout=30.0)
        shown = " ".join(one.appliance.command("status", check=False).stdout.split())
        assert "virtual IPs move without their connections: 198.51.100.2 is not on the segment" in shown
        assert "not on the segment" in one.appliance.log()


@pytest.mark.parametrize("vip", [VIP, VIP6])
def test_connections_end_after_the_longest_time(vip: str):
    """Both sides are told by the node that has them, silent clients too; afterwards it serves as before."""
    with pair(vip=vip, linger={"key": KEY, "longest": "5s"}) as (client, one, two):
        with SteadyClients(client, count=_COUNT, period=3600.0, vip=vip) as clients:
            _moved(one, two, vip)
            wait_until(lambda: not _established(client), what="all are reset", timeout=60.0)
            wait_until(lambda: not one.kept(vip), what="one gives the address up")
            seen = clients.end()
        assert (seen["ended"], list(seen["why"])) == (_COUNT, ["[Errno 104] Connection reset by peer"])
        (cut,) = one.appliance.events("linger-cut")
        assert (cut["address"], cut["connections"]) == (vip, _COUNT)
        servers = one.node.run(["ss", "-tnH", "state", "established", "dport", "=", "7001"])
        assert servers.count("\n") <= 1  # that of a check
        two.move()
        wait_until(lambda: one.kept(vip).get("active"), what="one serves again")
        assert who_answers(client, vip) == "one"


@pytest.mark.needs("keepalived")
def test_beside_keepalived_nothing_is_kept():
    """A successor that does not speak this resets connections, as ever; the address is given up soon."""
    with Segment() as segment, ExitStack() as stack:
        node, other, client = (segment.node(name) for name in ("one", "two", "client"))
        one = stack.enter_context(LingerNode(node, "one", config(priority=150)))
        wait_until(lambda: one.kept().get("active"), what="one serves", timeout=30.0)
        stack.enter_context(Keepalived(other, Instance(priority=100, advert=0.2))).wait_for("BACKUP")
        with SteadyClients(client, count=_COUNT, period=_PERIOD) as clients:
            one.move()
            wait_until(lambda: other.holds(VIP), what="keepalived has the address")
            wait_until(lambda: not _established(client), what="all have ended", timeout=120.0)
            seen = clients.end()
        assert seen["ended"] == _COUNT
        wait_until(lambda: not one.kept(), what="one gives the address up", timeout=40.0)
        assert "no-successor" in one.appliance.log()


def test_connections_that_the_kernel_forwards():
    """They have no socket on the node that forwards them: conntrack counts, and leads, as with a proxy."""
    with Segment() as segment, ExitStack() as stack:
        nodes = [segment.node(name) for name in ("one", "two")]
        client, server = segment.node("client"), segment.node("server")
        running: list[LingerNode] = []
        for node, port, priority in zip(nodes, (7101, 7102), (150, 100), strict=True):
            name = "one" if priority == 150 else "two"
            server.start([sys.executable, str(Path(greeter.__file__)), name, str(port)])
            with node.inside():
                Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
            servers = {"only": {"address": f"{server.address}:{port}"}}
            frontend = {"bind": [f"0.0.0.0:{PORT}"], "pool": "masters", "forward": "kernel"}
            given = config(
                priority=priority,
                api={"frontends": {"kube-api": frontend}},
                pools={"masters": {"check": {"type": "tcp", "interval": "1s"}, "servers": servers}},
            )
            running.append(stack.enter_context(LingerNode(node, name, given)))
        one, two = running
        wait_until(lambda: one.state() == "active", what="one is active", timeout=30.0)
        wait_until_ready(running)
        wait_until(lambda: who_answers(client) == "one", what="one forwards")
        with SteadyClients(client, count=_COUNT, period=_PERIOD) as clients:
            _moved(one, two)
            wait_until(lambda: one.kept().get("connections", 0) >= _COUNT, what="one keeps them")
            wait_until(lambda: who_answers(client) == "two", what="two forwards")
            seen = clients.end()
        assert (seen["ended"], seen["by"]) == (0, {"one": _COUNT})
        wait_until(lambda: not one.kept(), what="one gives the address up", timeout=60.0)


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
