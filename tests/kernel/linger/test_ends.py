"""Virtual IPs that move with their connections: who waits, what ends them, and what the kernel forwards."""

import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from support.linger.linger_field import (
    COUNT,
    KEY,
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
from support.network import greeter
from support.network.namespaces import Node, Segment
from support.processes.waiting import wait_until

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "nft", root=True),
    pytest.mark.slow("whole appliances on a segment of their own"),
]


def test_a_node_that_comes_back_waits_until_it_knows():
    """It has the higher priority, and takes nothing over while its `linger` cannot hear the active node."""
    with pair() as (client, one, two), ExitStack() as stack:
        one.appliance.stop(patience=60.0)
        wait_until(lambda: two.kept().get("active"), what="two serves")
        clients = stack.enter_context(SteadyClients(client, count=COUNT, period=PERIOD))
        with one.node.inside():
            taken = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            taken.bind(("0.0.0.0", 29446))
            one.appliance.start()
        wait_until(lambda: "29446" in str(one.status().get("trouble")), what="it says why it hears nobody")
        wait_until(lambda: "takes no address over" in one.shown(), what="it waits, and says so")
        assert one.state() != "active"
        taken.close()
        wait_until(lambda: one.kept().get("active"), what="one serves again", timeout=30.0)
        wait_until(lambda: two.kept().get("connections") == COUNT, what="two keeps its own")
        seen = clients.end()
        assert (seen["ended"], seen["by"]) == (0, {"two": COUNT})


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


@pytest.mark.parametrize("vip", [pytest.param(VIP, marks=pytest.mark.full("the same way")), VIP6])
def test_connections_end_after_the_longest_time(vip: str):
    """Both sides are told by the node that has them, silent clients too; afterwards it serves as before."""
    with pair(vip=vip, linger={"key": KEY, "longest": "5s"}) as (client, one, two):
        with SteadyClients(client, count=COUNT, period=3600.0, vip=vip) as clients:
            one.move()
            wait_until(lambda: not established(client), what="all are reset", timeout=60.0)
            wait_until(lambda: not one.kept(vip), what="one gives the address up")
            seen = clients.end()
        assert (seen["ended"], list(seen["why"])) == (COUNT, ["[Errno 104] Connection reset by peer"])
        (cut,) = one.appliance.events("linger-cut")
        assert (cut["address"], cut["connections"]) == (vip, COUNT)
        to_server = ["ss", "-tnH", "state", "established", "dport", "=", "7001"]
        wait_until(
            lambda: one.node.run(to_server).count("\n") <= 1, what="no server is left, but for a check"
        )
        two.move()
        wait_until(lambda: one.kept(vip).get("active"), what="one serves again")
        assert who_answers(client, vip) == "one"


@contextmanager
def _forwarding(**changes: object) -> Iterator[tuple[Node, Node, LingerNode, LingerNode]]:
    """Run two nodes whose kernels forward, and give a client, the server of both, and the nodes."""
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
                **changes,  # type: ignore[arg-type]  # keys of the configuration
            )
            running.append(stack.enter_context(LingerNode(node, name, given)))
        one, two = running
        wait_until(lambda: one.state() == "active", what="one is active", timeout=30.0)
        wait_until_ready(running)
        wait_until(lambda: who_answers(client) == "one", what="one forwards")
        yield client, server, one, two


def test_connections_that_the_kernel_forwards():
    """They have no socket on the node that forwards them: conntrack counts, and leads, as with a proxy."""
    with _forwarding() as (client, _, one, two):
        with SteadyClients(client, count=COUNT, period=PERIOD) as clients:
            moved(one, two)
            wait_until(lambda: one.kept().get("connections", 0) >= COUNT, what="one keeps them")
            wait_until(lambda: who_answers(client) == "two", what="two forwards")
            seen = clients.end()
        assert (seen["ended"], seen["by"]) == (0, {"one": COUNT})
        wait_until(lambda: not one.kept(), what="one gives the address up", timeout=60.0)


def test_forwarded_connections_end_after_the_longest_time():
    """Both ends are reset, though neither says anything."""
    with _forwarding(linger={"key": KEY, "longest": "5s"}) as (client, server, one, _):
        with SteadyClients(client, count=COUNT, period=3600.0) as clients:
            one.move()
            wait_until(lambda: not established(client), what="all clients are reset", timeout=60.0)
            wait_until(lambda: not one.kept(), what="one gives the address up")
            seen = clients.end()
        assert (seen["ended"], list(seen["why"])) == (COUNT, ["[Errno 104] Connection reset by peer"])
        (cut,) = one.appliance.events("linger-cut")
        assert cut["connections"] >= COUNT
        at_server = ["ss", "-tnH", "state", "established", "sport", "=", "7101"]
        wait_until(lambda: server.run(at_server).count("\n") <= 1, what="the server is told, but for a check")
