"""The end of a program of this node is no event at the router."""

import contextlib
import json
import os
import signal
from collections.abc import Iterator

import pytest
from support.announce.routers import FrrRouter
from support.announce.shared_node import ADDRESS, NODES_ASN, SharedNode, config
from support.network.namespaces import Segment
from support.processes.waiting import wait_until

from appliance.announce import bird_control

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "bird", "vtysh", root=True)]

FIRST, LAST = "203.0.113.0/24", "198.18.0.0/15"


@pytest.fixture
def site() -> Iterator[tuple[FrrRouter, SharedNode]]:
    """A router and a node that serves."""
    with contextlib.ExitStack() as stack:
        segment = stack.enter_context(Segment())
        machine, place = segment.node("router"), segment.node("lb-0")
        router = stack.enter_context(FrrRouter(machine, [place.address], asn=NODES_ASN))
        yield router, stack.enter_context(SharedNode(place, place.name, config([machine.address])))


@pytest.mark.promise("survives", "announce")
@pytest.mark.promise("survives", "BIRD")
def test_a_killed_program_withdraws_nothing(site: tuple[FrrRouter, SharedNode]):
    """Neither that of `announce` nor that of BIRD; both are back, and the session is established again."""
    router, node = site
    router.wait_for(ADDRESS, node.node)
    # FRR ends the first session when BFD, which it has just begun, is not up yet.
    wait_until(lambda: _bfd(node) == "Up", what="BFD is up")
    router.wait_for(ADDRESS, node.node)
    seen = router.root / "routes"
    with seen.open("wb") as output:
        monitor = router.node.start(["ip", "-o", "monitor", "route"], output=output)
        # A route of our own shows that the monitor listens.
        wait_until(lambda: _mark(router, FIRST) and FIRST in seen.read_text(), what="routes are watched")
        node.appliance.wait_for_restart("announce", node.appliance.kill("announce"))
        wait_until(lambda: node.state() == "serving", what="the next announce continues")
        control = node.appliance.paths.bird_control
        bird = bird_control.process(control)
        assert bird, "BIRD has ended with announce"
        before = _sessions(router)
        os.kill(bird, signal.SIGKILL)
        wait_until(lambda: bird_control.process(control) not in (0, bird), what="BIRD is back", timeout=20.0)
        wait_until(lambda: _sessions(router) > before, what="the session is back", timeout=30.0)
        shown = f"show bgp ipv4 unicast {ADDRESS}/32"
        wait_until(lambda: "stale" not in router.show(shown), what="the route was announced again")
        wait_until(lambda: _mark(router, LAST) and LAST in seen.read_text(), what="the monitor has kept up")
        monitor.kill()
    assert ADDRESS not in seen.read_text()
    assert router.serving(ADDRESS, [node.node]) == [node.node.name]


def _bfd(node: SharedNode) -> str:
    found = node.status().get("neighbors")
    return str(found[0]["bfd"]) if isinstance(found, list) and found else ""


def _sessions(router: FrrRouter) -> int:
    """Return how many sessions the router has established so far."""
    [found] = json.loads(router.show("show bgp neighbors json") or "{}").values()
    return int(found["connectionsEstablished"]) if found["bgpState"] == "Established" else 0


def _mark(router: FrrRouter, network: str) -> bool:
    """Add and remove a route of no concern at the router."""
    router.node.ip("route", "replace", network, "dev", "lo")
    router.node.ip("route", "del", network, "dev", "lo")
    return True
