"""The IPv4 header in front of what raw sockets receive."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fuzzing.damage import cuts, flips

from appliance.model.drop_reasons import DropReason
from appliance.wire.vrrp import ipv4_header
from appliance.wire.vrrp.advertisement import VrrpError
from appliance.wire.vrrp.ipv4_header import Ipv4Header

pytestmark = pytest.mark.pure

PAYLOAD = bytes.fromhex("3158c60100649c190ac34ce3")
PACKET = bytes.fromhex("45c0002000010000ff7000000a0100030a010001") + PAYLOAD
HEADER = Ipv4Header(source="10.1.0.3", destination="10.1.0.1", ttl=255, payload=PAYLOAD)


def reason(packet: bytes) -> DropReason:
    """Return why a packet is dropped; fails where it is not."""
    with pytest.raises(VrrpError) as caught:
        ipv4_header.decode(packet)
    return caught.value.reason


def test_a_captured_packet_is_read():
    """The header of a captured advertisement names sender, receiver and hops left."""
    assert ipv4_header.decode(PACKET) == HEADER


def test_options_are_skipped():
    """The payload starts behind the options (router alert here)."""
    packet = bytes((0x46,)) + PACKET[1:2] + b"\0\x24" + PACKET[4:20] + b"\x94\4\0\0" + PAYLOAD
    assert ipv4_header.decode(packet) == HEADER


def test_filling_is_left_out():
    """What an Ethernet frame is filled with is not part of the payload."""
    assert ipv4_header.decode(PACKET + bytes(14)) == HEADER


def test_a_part_is_truncated():
    """A packet cut at any length is truncated."""
    assert {reason(part) for part in cuts(PACKET)} == {DropReason.TRUNCATED}


@pytest.mark.parametrize(
    "start",
    [
        pytest.param("65c00020", id="version 6"),
        pytest.param("44c00020", id="a header of 16 bytes"),
        pytest.param("4fc00020", id="a header longer than the packet"),
        pytest.param("45c00013", id="a total length that ends in the header"),
        pytest.param("45c00021", id="a total length past the end"),
    ],
)
def test_contradictions_are_truncated(start: str):
    """A header whose lengths cannot be true is no whole packet."""
    assert reason(bytes.fromhex(start) + PACKET[4:]) is DropReason.TRUNCATED


def test_a_changed_bit_never_escapes():
    """Every packet with one bit changed gives a header or is dropped."""
    for damaged in flips(PACKET):
        with suppress(VrrpError):
            assert ipv4_header.decode(damaged).payload in damaged


@given(st.binary(max_size=100))
def test_garbage_never_escapes(packet: bytes):
    """Any bytes give a header or are dropped, and the payload is a part of them."""
    with suppress(VrrpError):
        assert ipv4_header.decode(packet).payload in packet
