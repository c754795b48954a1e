"""Literal addresses and their bytes."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.wire import literal

pytestmark = pytest.mark.pure


@given(st.ip_addresses())
def test_an_address_comes_back(address: ipaddress.IPv4Address | ipaddress.IPv6Address):
    """Text to bytes and back gives the shortest usual form."""
    assert literal.packed(str(address)) == address.packed
    assert literal.text(address.packed) == str(address)


def test_a_scope_is_left_out():
    """The interface of a link-local address is no part of its bytes."""
    assert literal.packed("fe80::1%eth0") == literal.packed("fe80::1")


@pytest.mark.parametrize("name", ["", "web", "10.0.0.1/24", "10.0.0.256"])
def test_a_name_is_refused(name: str):
    """What is no literal address is an error of the caller."""
    with pytest.raises(ValueError, match="address"):
        literal.packed(name)


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "fe80::1%eth0"])
def test_an_address_is_a_literal(host: str):
    """An address of either family needs no look-up, with or without a scope."""
    assert literal.is_literal(host)


@given(
    st.lists(st.integers(0, 300).map(str) | st.sampled_from(["00", "01", "", chr(0x661), "a"]), max_size=5)
)
def test_what_a_literal_is_ipaddress_says(octets: list[str]):
    """The short way for IPv4 takes what the long way takes, and nothing else."""
    host = ".".join(octets)
    try:
        ipaddress.ip_address(host)
    except ValueError:
        assert not literal.is_literal(host)
    else:
        assert literal.is_literal(host)


def test_the_hosts_of_many_servers_are_parsed_once(monkeypatch: pytest.MonkeyPatch):
    """A worker asks at each look at the health board, of more of them than the cache for packets holds."""
    parsed: list[str] = []

    def counted(text: str) -> ipaddress.IPv6Address:
        parsed.append(text)
        return ipaddress.IPv6Address(text)

    monkeypatch.setattr(literal.ipaddress, "ip_address", counted)
    for _ in range(2):
        assert all(literal.is_literal(f"2001:db8:1::{number:x}") for number in range(3000))
        assert literal.is_literal("198.18.0.1")
    assert len(parsed) == 3000


@pytest.mark.parametrize("host", ["", "web", "192.0.2.1:80", "[2001:db8::1]"])
def test_a_name_is_no_literal(host: str):
    """Anything else is a name to resolve."""
    assert not literal.is_literal(host)


@pytest.mark.parametrize(
    ("address", "raw"),
    [
        ("10.0.0.1", bytes((10, 0, 0, 1))),
        ("::ffff:10.0.0.1", bytes((10, 0, 0, 1))),
        ("::1", bytes(15) + b"\x01"),
        ("fe80::1%eth0", b"\xfe\x80" + bytes(13) + b"\x01"),
    ],
)
def test_a_peer_is_looked_up_by_its_own_family(address: str, raw: bytes):
    """An IPv4 client of a socket for both families is an IPv4 client."""
    assert literal.packed_peer(address) == raw
