"""Which networks cover others: what the standard library says of each pair."""

from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.model.network_cover import NetworkCover, numbered

pytestmark = pytest.mark.pure

TEXTS = st.builds(
    lambda address, length: str(ip_network(f"{address}/{length}", strict=False)),
    st.sampled_from(["10.0.0.1", "10.128.0.0", "0.0.0.0", "128.0.0.0"]),
    st.integers(0, 32),
) | st.builds(
    lambda address, length: str(ip_network(f"{address}/{length}", strict=False)),
    st.sampled_from(["2001:db8::1", "::1", "8000::"]),
    st.integers(0, 128),
)


@given(st.lists(TEXTS, max_size=6), TEXTS)
def test_a_network_is_covered_by_one_that_contains_it(texts: list[str], text: str):
    """A network covers itself and what lies within it; versions do not mix."""
    cover, wanted = NetworkCover(map(numbered, texts)), ip_network(text)
    every = [each for each in map(ip_network, texts) if each.version == wanted.version]
    assert cover.cover(numbered(text)) is any(wanted.subnet_of(each) for each in every)
    assert (numbered(text) in cover) is (text in texts)


@given(TEXTS)
def test_the_addresses_of_a_network(text: str):
    """Its first and its last one."""
    found, network = numbered(text), ip_network(text)
    assert (found.first, found.last) == (int(network[0]), int(network[-1]))
