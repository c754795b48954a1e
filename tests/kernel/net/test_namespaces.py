"""The segment that other kernel tests stand on."""

import contextlib
import socket
import subprocess
from pathlib import Path

import pytest
from support.network.namespaces import INTERFACE, Node, Segment
from support.processes.waiting import wait_until

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", root=True)]


def test_nodes_reach_each_other_at_once():
    """Nodes talk by both families as soon as they are made, sockets made inside stay inside."""
    with Segment() as segment:
        first, second = segment.node("first"), segment.node("second")
        assert _hears(first, second, second.address)
        assert _hears(first, second, second.address6)
        assert second.link_local.startswith("fe80")


def test_nothing_is_left():
    """After a failure namespaces are gone, and with them the programs that ran in them."""
    with contextlib.suppress(ZeroDivisionError), Segment() as segment:
        process = segment.node("only").start(["sleep", "1000"])
        _ = 1 / 0
    assert process.returncode == -9
    listed = subprocess.run(["ip", "netns", "list"], check=True, capture_output=True, text=True).stdout
    assert segment.name not in listed


def test_cable():
    """Unplugging takes the carrier, isolating does not, and both come back."""
    with Segment() as segment:
        node, other = segment.node("node"), segment.node("other")
        node.unplug()
        wait_until(lambda: "NO-CARRIER" in node.ip("link", "show", INTERFACE), what="no carrier")
        node.plug()
        wait_until(lambda: "NO-CARRIER" not in node.ip("link", "show", INTERFACE), what="carrier")
        node.isolate()
        assert "NO-CARRIER" not in node.ip("link", "show", INTERFACE)
        node.rejoin()
        assert _hears(node, other, other.address)


def test_home_again():
    """The block inside a node ends where it began, even by an error."""
    home = Path("/proc/thread-self/ns/net").readlink()
    with Segment() as segment:
        node = segment.node("only")
        with contextlib.suppress(ZeroDivisionError), node.inside():
            assert Path("/proc/thread-self/ns/net").readlink() != home
            _ = 1 / 0
    assert Path("/proc/thread-self/ns/net").readlink() == home


def _hears(speaker: Node, listener: Node, address: str) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with listener.inside():
        server = socket.socket(family, socket.SOCK_DGRAM)
        server.bind((address, 0))
    with server, speaker.inside(), socket.socket(family, socket.SOCK_DGRAM) as client:
        client.sendto(b"hello", (address, server.getsockname()[1]))
        server.settimeout(5)
        return server.recv(10) == b"hello"
