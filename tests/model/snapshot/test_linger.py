"""The addresses of nodes within the VXLAN."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.model.snapshot.linger import inside

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("outside", "within"),
    [
        ("10.1.2.3", "250.1.2.3"),
        ("172.16.0.1", "252.16.0.1"),
        ("192.168.7.9", "240.168.7.9"),
        ("26.1.2.3", "250.1.2.3"),
        ("fd00:2::1", "fd6c:622d:7374:7261:5979:3d06:9bfb:e665"),
    ],
)
def test_an_address_within_follows_from_the_one_outside(outside: str, within: str):
    """All nodes, also of other versions, compute the same one, of a network that nobody has."""
    assert inside(outside) == within


@given(st.sets(st.ip_addresses(v=6), min_size=2, max_size=5))
def test_no_two_addresses_of_ipv6_have_the_same(addresses: set[object]):
    """Any two of them differ, and are of our own network."""
    found = {inside(str(each)) for each in addresses}
    assert len(found) == len(addresses)
    assert all(each.startswith("fd6c:622d:7374:7261") for each in found)
