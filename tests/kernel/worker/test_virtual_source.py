"""`source: virtual-ip` on a segment: a virtual IP that is there and then is not, of both versions of IP."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from support.network.namespaces import INTERFACE, Node, Segment
from support.processes.log_lines import logged
from support.processes.waiting import wait_until
from support.values.snapshots import virtual_router
from support.worker.trace import Origin, Relay, Setting, relay, reset

from appliance.model.snapshot.pools import SourceAddress

pytestmark = pytest.mark.kernel

VIRTUAL_IPS = {4: "192.0.2.200/24", 6: "fd00::200/64"}


@pytest.fixture
def nodes() -> Iterator[dict[str, Node]]:
    """Give a client, a load balancer and a server on one segment."""
    with Segment() as segment:
        yield {name: segment.node(name) for name in ("client", "balancer", "server")}


@pytest.mark.promise("kernel", "source ports of a node (IP_LOCAL_PORT_RANGE)")
@pytest.mark.parametrize("version", [4, 6])
def test_server_sees_the_virtual_ip_while_it_can(nodes: dict[str, Node], version: int):
    """Two ports are two connections; others, and those after the address has left, come from the node."""
    virtual_ip = VIRTUAL_IPS[version]
    balancer = nodes["balancer"]
    own, server = (each.address if version == 4 else each.address6 for each in (balancer, nodes["server"]))
    balancer.batch(
        f"address add {virtual_ip} dev {INTERFACE} {'nodad preferred_lft 0' if version == 6 else ''}"
    )
    with nodes["server"].inside():
        origin = Origin(host=server)
    setting = Setting(
        origins=[origin],
        host=virtual_ip.split("/")[0],
        back={"source": SourceAddress.VIRTUAL_IP, "source_ports": (60998, 60999)},
        each={"max_connections": 3},
        changes={"virtual_routers": [virtual_router(addresses=(virtual_ip,))]},
    )
    with balancer.inside(), relay(setting) as running, ExitStack() as stack:
        servers = [_seen(nodes["client"], running, stack) for _ in range(3)]
        peers = [each.getpeername()[:2] for each in servers]
        assert sorted(peers[:2]) == [(setting.host, 60998), (setting.host, 60999)]
        assert peers[2][0] == own
        assert _failures(running) == ["no free port"]

        _client(nodes["client"], running, stack)
        wait_until(
            lambda: [each["phase"] for each in running.sessions()].count("queued") == 1,
            what="one client waits",
        )
        balancer.batch(f"address delete {virtual_ip} dev {INTERFACE}")
        reset(servers[2])  # what goes to the virtual IP does not come here any more
        assert stack.enter_context(origin.accept()).getpeername()[0] == own


def _client(node: Node, running: Relay, stack: ExitStack) -> None:
    with node.inside():
        stack.enter_context(running.connect())


def _seen(node: Node, running: Relay, stack: ExitStack) -> socket.socket:
    _client(node, running, stack)
    return stack.enter_context(running.setting.origins[0].accept())


def _failures(running: Relay) -> list[object]:
    told = logged(running.worker.paths.runtime / "log", "source-unavailable")
    return [each["reason"] for each in told]
