"""Virtual IPs on the page of a real browser: who holds them, handed over by a button, and held by nobody."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from support.network.namespaces import Node
from support.network.ports import free_port
from support.peers.chromium import Chromium, Tab
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance
from support.vrrp.vrrp_field import VIP, Field

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "tcpdump", "chromium", root=True),
    pytest.mark.slow("a whole appliance and a browser"),
]


def _config(port: int, *, priority: int) -> dict[str, object]:
    api = {
        "addresses": [f"{VIP}/24"],
        "interface": "eth0",
        "router_id": 42,
        "version": 3,
        "advert": "100ms",
        "priority": priority,
    }
    auth = {"user": "admin", "password": "s3cret"}
    return {
        "virtual_ips": {"api": api},
        "stats": {"bind": f"127.0.0.1:{port}", "auth": auth, "admin": "on"},
    }


@contextmanager
def _appliance(node: Node, *, priority: int) -> Iterator[str]:
    """Run an appliance in a node, and give the URL of its page."""
    port = free_port()
    with ExitStack() as stack:
        with node.inside():
            stack.enter_context(Appliance(_config(port, priority=priority)))
        yield f"http://admin:s3cret@127.0.0.1:{port}/"


@contextmanager
def _page(node: Node, url: str) -> Iterator[Tab]:
    """Open the page in a browser in the same node."""
    with ExitStack() as stack:
        with node.inside():
            browser = stack.enter_context(Chromium())
        tab = browser.tab()
        tab.go(url)
        yield tab


def test_a_virtual_ip_is_handed_over_and_taken_back(ground: Field):
    """By two clicks, of which the first one asks; both pages name who holds it."""
    with (
        _appliance(ground.one, priority=150) as one,
        _appliance(ground.two, priority=100) as two,
        _page(ground.one, one) as here,
        _page(ground.two, two) as there,
    ):
        here.until_text("this node", "#virtual-ips tr.active")
        there.until_text(ground.one.address, "#virtual-ips tr.backup")
        here.click("#move-api summary")
        here.click('#virtual-ips button[value="move api"]')
        here.until_text(ground.two.address, "#virtual-ips tr.backup")
        assert "moved away" in here.text("#virtual-ips")
        ground.wait_for_holder(ground.two)
        there.until_text("this node", "#virtual-ips tr.active")
        here.click('#virtual-ips button[value="reclaim api"]')
        here.until_text("this node", "#virtual-ips tr.active")
        ground.wait_for_holder(ground.one)
        assert here.complaints == there.complaints == []


def test_a_virtual_ip_that_nobody_takes(ground: Field):
    """The refusal is in words, above a page on which all is as before."""
    with _appliance(ground.one, priority=150) as one, _page(ground.one, one) as here:
        here.until_text("this node", "#virtual-ips tr.active")
        here.click("#move-api summary")
        here.click('#virtual-ips button[value="move api"]')
        here.until_text("no other node took over", "#notice")
        assert "this node" in here.text("#virtual-ips tr.active")
        here.click("#notice a")
        here.until("location.pathname == '/haproxy_stats' && !document.querySelector('#notice')")
        assert [each for each in here.complaints if "409" not in each] == []


def test_a_virtual_ip_that_is_lost(ground: Field):
    """Its interface goes down, and nobody else is heard: an alarm, until it is back."""
    with _appliance(ground.one, priority=150) as one, _page(ground.one, one) as here:
        here.until_text("this node", "#virtual-ips tr.active")
        ground.one.ip("link", "set", "eth0", "down")
        here.until_text("Virtual IP api is held by no router that this node receives from.", "#verdict.ill")
        assert "nobody heard" in here.text("#virtual-ips tr.fault")
        ground.one.ip("link", "set", "eth0", "up")
        here.until_text("this node", "#virtual-ips tr.active")
        wait_until(lambda: "held by no router" not in here.text("#verdict"), what="the alarm is over")
        assert here.complaints == []
