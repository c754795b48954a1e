"""Allow and deny lists decide by address alone, however many networks they hold."""

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.core.balancing.access_lists import AccessLists, NetworkSet

pytestmark = pytest.mark.pure


def packed(address: str) -> bytes:
    """Return an address as the data path has it."""
    return ip_address(address).packed


@pytest.mark.parametrize(
    ("network", "inside", "outside"),
    [
        ("10.0.0.0/24", "10.0.0.255", "10.0.1.0"),
        ("10.0.0.7", "10.0.0.7", "10.0.0.8"),
        ("0.0.0.0/0", "255.1.2.3", "::1"),
        ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::1"),
        ("::/0", "fe80::1", "10.0.0.1"),
        ("::ffff:10.0.0.0/104", "10.9.9.9", "11.0.0.0"),
        ("10.0.0.5/24", "10.0.0.1", "10.0.1.1"),
    ],
)
def test_network_holds_its_addresses(network: str, inside: str, outside: str):
    """An address is in a network of its own family, an IPv4-mapped network being one of IPv4."""
    assert packed(inside) in NetworkSet([network])
    assert packed(outside) not in NetworkSet([network])


@st.composite
def networks(draw: st.DrawFn) -> str:
    """Draw a network around one of a few addresses, so that look-ups meet it."""
    address = draw(st.sampled_from(["10.0.0.1", "10.128.0.0", "2001:db8::1", "fe80::1"]))
    return f"{address}/{draw(st.integers(0, ip_address(address).max_prefixlen))}"


ADDRESSES = (
    st.sampled_from(["10.0.0.1", "10.0.0.2", "10.128.0.0", "2001:db8::1", "fe80::2"]) | st.ip_addresses()
)


@given(texts=st.lists(networks(), max_size=8), address=ADDRESSES)
def test_table_agrees_with_the_standard_library(texts: list[str], address: object):
    """The table says what a walk through all networks says."""
    wanted = ip_address(str(address))
    expected = any(wanted in ip_network(text, strict=False) for text in texts)
    assert (wanted.packed in NetworkSet(texts)) is expected


def test_deny_wins_and_allow_excludes_the_rest():
    """With an allow list only its clients come in, without those of the deny list."""
    admission = AccessLists(allow=["10.0.0.0/8"], deny=["10.1.0.0/16"])
    assert [admission.admits(packed(each)) for each in ("10.2.0.1", "10.1.0.1", "11.0.0.1")] == [
        True,
        False,
        False,
    ]


def test_deny_alone_lets_the_rest_in():
    """Without an allow list everybody comes in who is not denied."""
    admission = AccessLists(allow=[], deny=["2001:db8::/32"])
    assert admission.admits(packed("10.0.0.1"))
    assert not admission.admits(packed("2001:db8::1"))
