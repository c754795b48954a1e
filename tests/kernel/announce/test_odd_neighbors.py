"""Neighbours that are neither BIRD nor FRR: sessions come up, and routes come and go, in both families."""

import contextlib

import pytest
from support.announce.odd_routers import ExaBgpRouter, GoBgpRouter, OddRouter
from support.announce.routers import ASN
from support.announce.shared_node import ADDRESS, ADDRESS6, NODES_ASN, SharedNode, config
from support.network.namespaces import Node, Segment
from support.processes.waiting import wait_until

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "bird", root=True),
    pytest.mark.slow("routers that operators seldom have"),
]


def _wait_for(router: OddRouter, node: Node, state: str) -> None:
    for address in (ADDRESS, ADDRESS6):
        wait_until(
            lambda: router.states(address, [node]) == [state],  # noqa: B023  # called at once
            what=f"the router has {address} as {state or 'gone'}",
            timeout=40.0,
        )


def _sessions(node: SharedNode) -> list[tuple[object, object]]:
    """Return state and error of each session, as the node reports them once a second."""
    found = node.status()["neighbors"]
    assert isinstance(found, list)
    return [(each["state"], each["error"]) for each in found]


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(GoBgpRouter, marks=pytest.mark.needs("gobgpd")),
        pytest.param(ExaBgpRouter, marks=pytest.mark.needs("exabgp")),
    ],
)
def test_an_odd_neighbour_learns_and_forgets(kind: type[GoBgpRouter] | type[ExaBgpRouter]):
    """It has the route while the node serves, GRACEFUL_SHUTDOWN when it leaves, then none, and again."""
    with contextlib.ExitStack() as stack:
        segment = stack.enter_context(Segment())
        machine, place = segment.node("router"), segment.node("lb-0")
        router = stack.enter_context(kind(machine, [place.address, place.address6], asn=NODES_ASN))
        routers = {
            "tor-4": {"address": machine.address, "asn": ASN},
            "tor-6": {"address": machine.address6, "asn": ASN},
        }
        made = config([machine.address, machine.address6], bgp={"neighbors": routers})
        made["shared_ips"]["ingress"]["drain"] = "4s"  # type: ignore[index]  # JSON
        node = stack.enter_context(SharedNode(place, place.name, made))
        _wait_for(router, place, "served")
        wait_until(lambda: _sessions(node) == [("Established", "")] * 2, what="both sessions are up")
        node.appliance.command("leave")
        _wait_for(router, place, "drained")
        _wait_for(router, place, "")
        assert node.appliance.reload(node.appliance.config)["ok"]
        _wait_for(router, place, "served")
        node.appliance.stop(patience=60.0)
        _wait_for(router, place, "")
