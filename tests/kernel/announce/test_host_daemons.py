"""`engine: table`: the host's own FRR or BIRD announces, with what `appliance bgp example` prints."""

import contextlib
from collections.abc import Iterator
from functools import partial

import pytest
from support.announce.host_daemons import HostBird, HostFrr
from support.announce.routers import ASN, BirdRouter, FrrRouter, Router
from support.announce.shared_node import ADDRESS, NODES_ASN, SharedNode, config
from support.network.namespaces import Node, Segment
from support.processes.waiting import wait_until

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "bird", "vtysh", root=True)]

PASSWORD = "s3cret"  # noqa: S105  # of this test
SHUTDOWN = {BirdRouter: "(65535,0)", FrrRouter: "graceful-shutdown"}
SHOWN = {BirdRouter: f"show route for {ADDRESS}/32 all", FrrRouter: f"show bgp ipv4 unicast {ADDRESS}/32"}


@pytest.fixture(
    params=[
        pytest.param((HostBird, FrrRouter), marks=pytest.mark.slow("the other daemon is in `make test`")),
        (HostFrr, BirdRouter),
    ],
    ids=["bird", "frr"],
)
def site(request: pytest.FixtureRequest) -> Iterator[tuple[Router, SharedNode, SharedNode]]:
    """A router, a node with a daemon of its own, and one with the appliance's BIRD."""
    daemon, kind = request.param
    with contextlib.ExitStack() as stack:
        segment = stack.enter_context(Segment())
        machine, host, plain = (segment.node(name) for name in ("router", "lb-0", "lb-1"))
        router = stack.enter_context(_router(kind, machine, host, plain))
        neighbors = {
            "tor-0": {
                "address": machine.address,
                "asn": ASN,
                "bfd": {"interval": "500ms", "multiplier": 3},
                "password": PASSWORD,
            }
        }
        nodes = [
            stack.enter_context(SharedNode(each, each.name, config([], bgp=given)))
            for each, engine in ((host, "table"), (plain, "bird"))
            for given in [{"engine": engine, "neighbors": neighbors, "router_id": each.address}]
        ]
        example = nodes[0].appliance.command("bgp", "example", daemon.name).stdout
        assert PASSWORD not in example
        stack.enter_context(daemon(host, example.replace("REPLACE-ME", PASSWORD)))
        yield router, *nodes


def _router(kind: type[Router], machine: Node, *nodes: Node) -> Router:
    addresses = [each.address for each in nodes]
    if kind is BirdRouter:
        return BirdRouter(machine, addresses, asn=NODES_ASN, lines=f'password "{PASSWORD}";')
    lines = "".join(f" neighbor {each} password {PASSWORD}\n" for each in addresses)
    return FrrRouter(machine, addresses, asn=NODES_ASN, lines=lines)


@pytest.mark.promise("program", "announce")
@pytest.mark.promise("docs/shared-ips.md", "another daemon of the host announces what is in the tables")
@pytest.mark.promise("docs/shared-ips.md", "nodes with different engines are one set of next hops")
def test_the_example_makes_the_host_s_daemon_announce(site: tuple[Router, SharedNode, SharedNode]):
    """It and our BIRD are one set of next hops; drained it is the last resort, and then withdrawn."""
    router, host, plain = site
    router.wait_for(ADDRESS, host.node, plain.node)
    shown = host.appliance.command("bgp", "status").stdout
    assert "table 198" in shown
    assert "the other daemon's to show" in shown
    # The session is established before BFD is up, without which the exit status is 1.
    status = partial(plain.appliance.command, "bgp", "status", check=False)
    wait_until(lambda: status().returncode == 0, what="BFD is up")
    assert "tor-0" in status().stdout
    host.server.kill()
    router.wait_for(ADDRESS, plain.node)
    plain.appliance.command("leave")
    router.wait_for(ADDRESS, host.node)
    assert SHUTDOWN[type(router)] in router.show(SHOWN[type(router)])
    host.appliance.command("leave")
    wait_until(lambda: not router.next_hops(ADDRESS), what="it is withdrawn", timeout=20.0)
