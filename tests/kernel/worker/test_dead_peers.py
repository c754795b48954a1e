"""Peers that are gone without a word, as after a power cut: TCP keepalive finds them on both sides."""

import socket
from collections.abc import Iterator

import pytest
from support.network.namespaces import Node, Segment
from support.worker.trace import Origin, Setting, is_reset, relay

from appliance.model.end_reasons import EndReason
from appliance.model.snapshot.frontends import KeepAlive

pytestmark = pytest.mark.kernel

KEEPALIVE = KeepAlive(idle=1.0, interval=1.0, count=2)


@pytest.fixture
def nodes() -> Iterator[dict[str, Node]]:
    """Give a client, a load balancer and a server on one segment."""
    with Segment() as segment:
        yield {name: segment.node(name) for name in ("client", "balancer", "server")}


@pytest.mark.promise("kernel", "TCP keepalive and user timeout")
@pytest.mark.parametrize(
    ("dead", "reason"), [("client", EndReason.CLIENT_ABORT), ("server", EndReason.SERVER_ABORT)]
)
def test_keepalive_finds_a_peer_that_is_gone(nodes: dict[str, Node], dead: str, reason: EndReason):
    """Every packet of an idle peer is lost from one moment on: its session ends, and the other is told."""
    with nodes["server"].inside():
        origin = Origin(host=nodes["server"].address)
    kept = {"keepalive": KEEPALIVE}
    with nodes["balancer"].inside():
        setting = Setting(origins=[origin], host=nodes["balancer"].address, front=kept, back=kept)
        with relay(setting) as running:
            with nodes["client"].inside():
                client = socket.create_connection((setting.host, setting.port), timeout=15)
            client.sendall(b"hello")
            server = origin.accept()
            assert server.recv(10) == b"hello"
            nodes[dead].isolate()
            running.ended(reason)
            assert is_reset(server if dead == "client" else client)
