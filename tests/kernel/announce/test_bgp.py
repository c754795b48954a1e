"""Shared addresses with real routers: announced while a node serves, drained when it does not."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from support.announce.routers import BirdRouter, FrrRouter, Router
from support.announce.shared_node import ADDRESS, ADDRESS6, NODES_ASN, SharedNode, config
from support.network.namespaces import Segment
from support.processes.waiting import wait_until

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "bird", root=True)]


Site = tuple[Router, SharedNode, SharedNode]


@contextlib.contextmanager
def site(kind: Callable[..., Router]) -> Iterator[Site]:
    """A router and two nodes on a segment; both nodes serve."""
    with contextlib.ExitStack() as stack:
        segment = stack.enter_context(Segment())
        machine, *places = (segment.node(name) for name in ("router", "lb-0", "lb-1"))
        peers = [address for each in places for address in (each.address, each.address6)]
        router = stack.enter_context(kind(machine, peers, asn=NODES_ASN))
        routers = [machine.address, machine.address6]
        one, other = (stack.enter_context(SharedNode(each, each.name, config(routers))) for each in places)
        for address in (ADDRESS, ADDRESS6):
            router.wait_for(address, one.node, other.node)
        yield router, one, other


@pytest.mark.promise("program", "announce")
@pytest.mark.parametrize(
    "kind", [BirdRouter, pytest.param(FrrRouter, marks=pytest.mark.slow("another router"))]
)
def test_both_nodes_serve_and_one_leaves(kind: type[Router]):
    """The router has both as next hops in both families; a dead server, `leave` and a stop take one away.

    What happened before is told by `why`.
    """
    with site(kind) as (router, one, other):
        assert one.state() == "serving"
        one.server.kill()
        router.wait_for(ADDRESS, other.node)
        assert one.state() == "drained"
        other.appliance.command("leave")
        wait_until(lambda: other.state() == "withdrawn", what="it is withdrawn", timeout=20.0)
        # The drained node is the last resort: better than nothing.
        router.wait_for(ADDRESS, one.node)
        assert other.appliance.reload(other.appliance.config)["ok"]
        router.wait_for(ADDRESS, other.node)
        _, *told = other.appliance.command("why", "shared/ingress").stdout.split("It became ")
        assert [each.split()[0] for each in told] == ["withdrawn", "drained", "serving"]
        assert other.node.holds(ADDRESS, "lo")
        other.appliance.stop(patience=60.0)
        router.wait_for(ADDRESS, one.node)
        assert not other.node.holds(ADDRESS, "lo")
        assert other.routes(198) == other.routes(199) == []


@pytest.mark.parametrize(
    ("killed", "kind"),
    [
        pytest.param("announce", BirdRouter, marks=pytest.mark.slow("another router")),
        # With BFD, BIRD as a router ends the path as soon as BFD is down, also in a graceful restart.
        pytest.param("bird", partial(BirdRouter, bfd=False), marks=pytest.mark.slow("another router")),
    ],
)
def test_a_kill_is_no_event_at_the_router(killed: str, kind: Callable[..., Router]):
    """BIRD and `announce` are replaced after a KILL, and the router changes no route."""
    with site(kind) as (router, one, other):
        router.watch()
        before = one.pid(killed)
        os.kill(before, signal.SIGKILL)
        wait_until(
            lambda: one.pid(killed) != before and are_established(one),
            what=f"another {killed} has its sessions",
            timeout=40.0,
        )
        assert router.serving(ADDRESS, [one.node, other.node]) == [one.name, other.name]
        assert router.changes(ADDRESS) == []


def are_established(node: SharedNode) -> bool:
    """Return whether all sessions of a node are."""
    found = node.status().get("neighbors")
    return isinstance(found, list) and bool(found) and all(each["state"] == "Established" for each in found)


@pytest.mark.promise("docs/shared-ips.md", "the end of supervisord is no event at a router")
@pytest.mark.slow("another router, and two starts")
def test_a_killed_supervisord_is_no_event_at_the_router():
    """The next `run` ends what is left, and continues with its routes and with BIRD."""
    with site(FrrRouter) as (router, one, other):
        router.watch()
        bird = one.pid("bird")
        os.kill(one.appliance.pid, signal.SIGKILL)
        wait_until(lambda: not one.appliance.is_running(), what="supervisord is gone")
        with one.node.inside():
            one.appliance.start()
        wait_until(lambda: one.state() == "serving" and are_established(one), what="it serves again")
        assert one.pid("bird") == bird
        assert router.serving(ADDRESS, [one.node, other.node]) == [one.name, other.name]
        assert router.changes(ADDRESS) == []


@pytest.mark.promise("docs/shared-ips.md", "a BIRD that hangs is replaced")
@pytest.mark.slow("waits for the watchdog")
def test_a_bird_that_hangs_is_replaced():
    """The watchdog kills a BIRD that does not answer, and another one has its sessions."""
    with site(BirdRouter) as (_, one, _other):
        assert one.appliance.reload({**one.appliance.config, "watchdog": "3s"})["ok"]
        bird = one.pid("bird")
        os.kill(bird, signal.SIGSTOP)
        wait_until(lambda: "BIRD does not answer" in str(one.status().get("trouble")), what="it is told")
        wait_until(
            lambda: one.pid("bird") != bird and are_established(one),
            what="another BIRD has its sessions",
            timeout=60.0,
        )
