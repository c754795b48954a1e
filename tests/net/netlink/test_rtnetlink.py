"""What the kernel says of links and addresses: read, or one error, whatever the bytes are."""

import socket
import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.net.netlink import netlink, rtnetlink
from appliance.net.netlink.address_messages import NEW_ADDRESS, AddressFacts, decode_address
from appliance.net.netlink.link_messages import decode_link, decode_macvlan
from appliance.net.netlink.netlink import Message
from appliance.net.netlink.rtnetlink import DamagedMessage

pytestmark = pytest.mark.sockets

_HEADER = struct.pack("=BBBBI", socket.AF_INET, 24, 0x80, 0, 3)
_GOOD = _HEADER + struct.pack("=HH", 8, 2) + socket.inet_aton("192.0.2.1")
_DECODERS = [decode_address, decode_link, decode_macvlan]


def message(body: bytes) -> Message:
    """Return a message with this behind its header."""
    (made,) = netlink.split(struct.pack("=IHHII", 16 + len(body), NEW_ADDRESS, 0, 0, 0) + body)
    return made


def test_an_address_is_read() -> None:
    """Interface, address and prefix length, without a mark."""
    expected = AddressFacts(index=3, address="192.0.2.1/24", mark=0, usable=True)
    assert decode_address(message(_GOOD)) == expected


@pytest.mark.parametrize("body", [b"", _HEADER[:4], _HEADER, _GOOD[:-2]])
def test_damage_is_one_error(body: bytes) -> None:
    """Without an address, or cut anywhere, a message is damaged; among others it is left out."""
    with pytest.raises(DamagedMessage):
        decode_address(message(body))
    found = rtnetlink.readable(decode_address, [message(body), message(_GOOD)])
    assert [each.address for each in found] == ["192.0.2.1/24"]


def test_a_link_has_a_name() -> None:
    """One without is damaged."""
    with pytest.raises(DamagedMessage):
        decode_link(message(bytes(16)))


@pytest.mark.parametrize("decode", _DECODERS)
@given(body=st.binary(max_size=120))
def test_garbage_never_escapes(decode: object, body: bytes) -> None:
    """Any bytes are facts, nothing of ours, or a damaged message."""
    assert callable(decode)
    with suppress(DamagedMessage):
        decode(message(body))
