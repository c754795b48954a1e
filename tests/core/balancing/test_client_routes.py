"""Which pool a client's address leads to: the first route with a network that contains it."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from appliance.core.balancing.client_routes import ClientRoutes
from appliance.model.snapshot.frontends import ClientRoute

pytestmark = pytest.mark.pure

ADDRESSES = ["10.0.0.1", "10.128.0.0", "2001:db8::1", "fe80::1"]
NETWORKS = st.sampled_from(ADDRESSES).flatmap(
    lambda address: st.integers(0, ip_address(address).max_prefixlen).map(lambda size: f"{address}/{size}")
)
ROUTES = st.lists(st.lists(NETWORKS, min_size=1, max_size=3), max_size=5)
CLIENTS = st.sampled_from(ADDRESSES).map(ip_address) | st.ip_addresses()


@example([["10.0.0.0/8"], ["10.0.0.0/8", "10.0.0.1"], ["::/0"]], IPv4Address("10.0.0.1"))
@example([["10.0.0.1"], ["10.0.0.0/8"]], IPv4Address("10.0.0.2"))
@given(ROUTES, CLIENTS)
def test_the_first_one_that_contains_it(networks: list[list[str]], client: IPv4Address | IPv6Address):
    """Look-ups find what going through the routes one by one finds, not the smallest network."""
    routes = [ClientRoute(pool=f"p{at}", networks=tuple(each)) for at, each in enumerate(networks)]
    expected = (
        each.pool
        for each in routes
        if any(client in ip_network(text, strict=False) for text in each.networks)
    )
    assert ClientRoutes(routes).pool(client.packed) == next(expected, None)


def test_mapped_networks_are_of_ipv4():
    """As in the lists of who may connect: clients of an IPv6 socket are looked up by their IPv4 address."""
    routes = ClientRoutes([ClientRoute(pool="p", networks=("::ffff:10.0.0.0/104",))])
    assert routes.pool(ip_address("10.9.9.9").packed) == "p"
