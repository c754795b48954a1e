"""A flood of SYNs against a frontend, as the kernel meets it with SYN cookies, which are its default."""

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.linger.linger_field import PORT, LingerNode, SteadyClients, config, who_answers
from support.network import syn_flood
from support.network.namespaces import INTERFACE, Node, Segment
from support.processes.waiting import wait_until

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", root=True),
    pytest.mark.slow("a flood has a processor for itself"),
]


def counters(node: Node) -> Mapping[str, int]:
    """Return the kernel's counters of TCP beside those of the MIB (/proc/net/netstat)."""
    lines = [each.split() for each in node.run(["cat", "/proc/net/netstat"]).splitlines()]
    return {
        name: int(value)
        for names, values in zip(lines[::2], lines[1::2], strict=True)
        for name, value in zip(names[1:], values[1:], strict=True)
    }


@pytest.mark.promise("docs/sizing.md", "a flood of SYNs ends no connection, and refuses none")
def test_a_flood_of_syns_keeps_nobody_out():
    """Open connections go on, new ones are made with cookies, and the kernel counts them."""
    cookies = Path("/proc/sys/net/ipv4/tcp_syncookies")
    with Segment() as segment, ExitStack() as stack:
        here, client, other, sender = (segment.node(each) for each in ("here", "client", "other", "sender"))
        with here.inside():
            cookies.write_text("1")
        settings = config(priority=1)
        del settings["linger"], settings["virtual_ips"]
        here.ip("route", "add", syn_flood.SENDERS, "via", sender.address)
        flood = [sys.executable, syn_flood.__file__, INTERFACE, here.mac, here.address, str(PORT)]
        with LingerNode(here, "here", settings):
            wait_until(lambda: who_answers(client, here.address) == "here", what="it serves", timeout=30.0)
            clients = stack.enter_context(SteadyClients(client, count=20, period=0.05, vip=here.address))
            sender.start(flood)
            wait_until(
                lambda: counters(here)["SyncookiesSent"] > 10_000, what="queues are full", timeout=60.0
            )
            assert [who_answers(other, here.address) for _ in range(3)] == ["here"] * 3
            assert counters(here)["SyncookiesRecv"] >= 1
            clients.ask()
            assert clients.end()["ended"] == 0
