"""Sessions that are down with real routers: each is told with its cause."""

import contextlib
import copy
from collections.abc import Iterator
from functools import partial

import pytest
from support.announce.routers import ASN, BirdRouter
from support.announce.shared_node import NODES_ASN, SharedNode, config
from support.network.namespaces import Segment
from support.processes.waiting import wait_until

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "bird", root=True)]

BFD = {"interval": "100ms", "multiplier": 3}
WORDS = {
    "wrong-asn": "disagree about an ASN: here this node is 64512 and the router 64600",
    "wrong-password": "a password that differs",
    "one-sided-ttl": "TTL security on one side only",
    "no-bgp": "Nothing accepts at",
    "no-bfd": "the router does not have it for this node",
}


@pytest.fixture
def node() -> Iterator[SharedNode]:
    """A node with five routers, each of which is wrong in another way."""
    with contextlib.ExitStack() as stack:
        segment = stack.enter_context(Segment())
        place = segment.node("lb-0")
        machines = {name: segment.node(name) for name in WORDS}

        def router(name: str, *, asn: int = NODES_ASN, lines: str = "", bfd: bool = False) -> None:
            machine = machines[name]
            stack.enter_context(BirdRouter(machine, [place.address], asn=asn, lines=lines, bfd=bfd))

        router("wrong-asn", asn=NODES_ASN + 1)
        router("wrong-password", lines='password "another";')
        router("one-sided-ttl")
        router("no-bfd")
        neighbors: dict[str, dict[str, object]] = {
            name: {"address": each.address, "asn": ASN} for name, each in machines.items()
        }
        neighbors["wrong-password"]["password"] = "s3cret"  # noqa: S105  # of this test
        neighbors["one-sided-ttl"]["ttl_security"] = True
        neighbors["no-bfd"]["bfd"] = BFD
        yield stack.enter_context(SharedNode(place, place.name, config([], bgp={"neighbors": neighbors})))


@pytest.mark.promise("docs/shared-ips.md", "each cause of a session that is down is told")
def test_each_cause_is_told(node: SharedNode):
    """By `why` with the neighbour's name; `bgp status` and `status` say which sessions are down.

    A reload with the right password brings that session up, and the others keep their BIRD.
    """
    for name, words in WORDS.items():
        told = partial(_tells, node, name, words)
        wait_until(told, what=f"the cause of {name} is told", pause=0.5)
    shown = node.appliance.command("bgp", "status", check=False)
    assert shown.returncode == 1
    for name in WORDS.keys() - {"no-bfd"}:
        assert f"the BGP session with {name} is down" in shown.stdout
    assert "BFD with no-bfd is Down" in shown.stdout
    assert "Bad peer AS" in shown.stdout
    found, bird = copy.deepcopy(node.appliance.config), node.pid("bird")
    found["bgp"]["neighbors"]["wrong-password"]["password"] = "another"  # type: ignore[index]  # noqa: S105  # JSON; of this test
    assert node.appliance.reload(found)["ok"]
    down = "the BGP session with wrong-password is down"
    wait_until(
        lambda: down not in node.appliance.command("bgp", "status", check=False).stdout,
        what="the session is up",
        pause=0.5,
        timeout=60.0,
    )
    assert node.pid("bird") == bird


@pytest.mark.slow("a session that goes down and comes back twice")
def test_a_session_that_flaps():
    """Blocked BFD ends it, which is its cause; it returns without BFD, and that is kept, too."""
    with contextlib.ExitStack() as stack:
        segment = stack.enter_context(Segment())
        place, machine = segment.node("lb-0"), segment.node("router")
        router = stack.enter_context(BirdRouter(machine, [place.address], asn=NODES_ASN))
        node = stack.enter_context(SharedNode(place, place.name, config([machine.address])))
        wait_until(lambda: _tells(node, "tor-0", "BFD is up"), what="BFD is up", timeout=40.0)
        for line in (
            "add table ip blocking",
            "add chain ip blocking first { type filter hook input priority 0; }",
            "add rule ip blocking first udp dport 3784 drop",
        ):
            place.run(["nft", line])
        node.appliance.wait_for_event("bgp-session-down", lambda each: "BFD" in str(each["reason"]))
        node.appliance.wait_for_event("bfd-down", timeout=60.0)
        assert "BFD with tor-0 is Down" in node.appliance.command("status", check=False).stdout
        assert "UDP port 3784" in " ".join(node.appliance.command("why", "tor-0", check=False).stdout.split())
        place.run(["nft", "delete table ip blocking"])
        node.appliance.wait_for_event("bfd-up", timeout=60.0)
        router.show("disable n0")
        node.appliance.wait_for_event(
            "bgp-session-down", lambda each: "Administrative shutdown" in str(each["reason"])
        )
        router.show("enable n0")
        wait_until(lambda: _tells(node, "tor-0", "BFD is up"), what="it is up again", timeout=40.0)
        told = " ".join(node.appliance.command("why", "tor-0").stdout.split())
        for words in ("Its session went down", "Administrative shutdown", "Its session was without BFD"):
            assert words in told


def _tells(node: SharedNode, name: str, words: str) -> bool:
    return words in " ".join(node.appliance.command("why", name, check=False).stdout.split())
