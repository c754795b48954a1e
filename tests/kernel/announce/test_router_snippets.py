"""The routers of docs/shared-ips.md: their configurations, typed as they are there, spread over the nodes."""

import contextlib
from collections.abc import Iterator

import pytest
from support.announce.host_daemons import HostBird, HostFrr
from support.announce.routers import ASN, Router
from support.announce.shared_node import ADDRESS, SharedNode, config
from support.documents.pages import DOCS
from support.network.namespaces import Segment
from support.processes.waiting import wait_until

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "bird", "vtysh", root=True)]

PAGE = (DOCS / "shared-ips.md").read_text()
NOBODY = "192.0.2.99"


def snippet(heading: str) -> str:
    """Return the block of the page below a sentence."""
    return PAGE.partition(f"{heading}:\n\n```\n")[2].partition("```")[0]


@pytest.fixture(
    params=[
        (HostFrr, "FRR as the router"),
        pytest.param((HostBird, "BIRD 2 as the router"), marks=pytest.mark.slow("the other router is not")),
    ],
    ids=["frr", "bird"],
)
def site(request: pytest.FixtureRequest) -> Iterator[tuple[Router, SharedNode, SharedNode]]:
    """The router of the page, and two of its three nodes, with the page's password and times."""
    daemon, heading = request.param
    with contextlib.ExitStack() as stack:
        segment = stack.enter_context(Segment())
        machine, *places = (segment.node(name) for name in ("router", "lb-0", "lb-1"))
        text = snippet(heading).replace("10.0.0.13", NOBODY)
        for written, real in zip(("10.0.0.11", "10.0.0.12"), places, strict=True):
            text = text.replace(written, real.address)
        router = stack.enter_context(daemon(machine, text))
        tor = {
            "address": machine.address,
            "asn": ASN,
            "password": "s3cret",
            "bfd": {"interval": "500ms", "multiplier": 3},
        }
        bgp = {"neighbors": {"tor-a": tor}}
        yield (
            router,
            *(stack.enter_context(SharedNode(each, each.name, config([], bgp=bgp))) for each in places),
        )


@pytest.mark.promise("docs/shared-ips.md", "the configurations of FRR and BIRD as routers")
def test_the_router_spreads_over_the_nodes(site: tuple[Router, SharedNode, SharedNode]):
    """A drained node is left out while another one serves, and used when it is the last."""
    router, one, other = site
    router.wait_for(ADDRESS, one.node, other.node)
    for each in (one, other):
        wait_until(
            lambda each=each: '"Up"' in each.appliance.command("bgp", "status", "--json", check=False).stdout,
            what="BFD is up",
        )
    one.server.kill()
    router.wait_for(ADDRESS, other.node)
    other.appliance.command("leave")
    router.wait_for(ADDRESS, one.node)
