"""Neighbour discovery frames: announcements, probes, and what others send."""

import ipaddress
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fuzzing.damage import cuts, flips, ones_complement_sum

from appliance.wire.ethernet import neighbour_discovery
from appliance.wire.ethernet.neighbour_discovery import Kind, NeighbourError, NeighbourPacket

pytestmark = pytest.mark.pure

MAC = bytes.fromhex("02005e102030")
ADDRESS = "2001:db8::abcd:a"
ADVERTISEMENT = bytes.fromhex(
    "33330000000102005e10203086dd"
    "6000000000203aff20010db80000000000000000abcd000aff020000000000000000000000000001"
    "8800233e2000000020010db80000000000000000abcd000a020102005e102030"
)
PROBE = bytes.fromhex(
    "3333ffcd000a02005e10203086dd"
    "6000000000183aff00000000000000000000000000000000ff0200000000000000000001ffcd000a"
    "8700a0400000000020010db80000000000000000abcd000a"
)

MACS = st.binary(min_size=6, max_size=6)
ADDRESSES = st.integers(0, 2**128 - 1).map(lambda number: str(ipaddress.IPv6Address(number)))


def checked(frame: bytes) -> int:
    """Return the sum of the message with RFC 8200's pseudo-header, word by word; 0xFFFF is right."""
    message = frame[54:]
    head = frame[22:54] + len(message).to_bytes(4, "big") + bytes((0, 0, 0, neighbour_discovery.ICMPV6))
    return ones_complement_sum(head + message)


def changed(frame: bytes, at: int, value: int) -> bytes:
    """Return a frame with another byte at `at`, and the checksum that is right for it."""
    damaged = bytearray(frame)
    damaged[at] = value
    damaged[56:58] = bytes(2)
    damaged[56:58] = (0xFFFF - checked(bytes(damaged))).to_bytes(2, "big")
    return bytes(damaged)


def test_an_advertisement_is_written():
    """It goes to all nodes from the address itself, override set, with our hardware address in it."""
    assert neighbour_discovery.unsolicited(MAC, ADDRESS) == ADVERTISEMENT


def test_a_router_says_so():
    """The router flag is the first bit of the flags, beside override."""
    frame = neighbour_discovery.unsolicited(MAC, ADDRESS, router=True)
    assert frame[58:62] == b"\xa0\0\0\0"
    assert checked(frame) == 0xFFFF


def test_a_probe_is_written():
    """A probe goes to the solicited-node group of the address, from nobody, without options."""
    assert neighbour_discovery.probe(MAC, ADDRESS) == PROBE


@given(MACS, ADDRESSES, st.booleans())
def test_an_advertisement_comes_back(mac: bytes, address: str, router: bool):  # noqa: FBT001  # hypothesis gives it
    """What was announced is read as it was meant, and its checksum is the RFC's."""
    frame = neighbour_discovery.unsolicited(mac, address, router=router)
    packet = NeighbourPacket(kind=Kind.ADVERTISEMENT, sender_mac=mac, sender=address, target=address)
    assert neighbour_discovery.decode(frame) == packet
    assert checked(frame) == 0xFFFF


@given(MACS, ADDRESSES)
def test_a_probe_comes_back(mac: bytes, address: str):
    """A probe is read as a solicitation from nobody, and its checksum is the RFC's."""
    frame = neighbour_discovery.probe(mac, address)
    packet = NeighbourPacket(kind=Kind.SOLICITATION, sender_mac=mac, sender="::", target=address)
    assert neighbour_discovery.decode(frame) == packet
    assert checked(frame) == 0xFFFF


def test_filling_is_left_out():
    """Bytes behind the IPv6 packet are not looked at."""
    assert neighbour_discovery.decode(PROBE + bytes(3)) == neighbour_discovery.decode(PROBE)


def test_a_part_is_refused():
    """A frame cut at any length is refused."""
    for part in cuts(ADVERTISEMENT):
        with pytest.raises(NeighbourError):
            neighbour_discovery.decode(part)


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        pytest.param(13, 0x00, "not ICMPv6", id="ethertype"),
        pytest.param(14, 0x40, "not ICMPv6", id="IP version"),
        pytest.param(20, 17, "not ICMPv6", id="next header"),
        pytest.param(21, 254, "outside", id="hop limit"),
        pytest.param(19, 16, "length", id="less than a message"),
        pytest.param(19, 64, "length", id="more than the frame"),
        pytest.param(54, 134, "neither", id="router advertisement"),
        pytest.param(55, 1, "neither", id="code"),
    ],
)
def test_what_is_no_neighbour_message_is_refused(offset: int, value: int, message: str):
    """Each check of RFC 4861 section 7.1 refuses by name, although the checksum is right."""
    with pytest.raises(NeighbourError, match=message):
        neighbour_discovery.decode(changed(ADVERTISEMENT, offset, value))


def test_a_wrong_checksum_is_refused():
    """A message that was damaged on its way is refused."""
    with pytest.raises(NeighbourError, match="checksum"):
        neighbour_discovery.decode(ADVERTISEMENT[:-1] + b"\x31")


def test_half_an_option_is_refused():
    """Options are whole units of 8 bytes."""
    frame = ADVERTISEMENT[:18] + b"\0\x1e" + ADVERTISEMENT[20:-2]
    with pytest.raises(NeighbourError, match="options"):
        neighbour_discovery.decode(changed(frame, 14, 0x60))


@pytest.mark.parametrize("frame", [ADVERTISEMENT, PROBE], ids=["advertisement", "probe"])
def test_a_changed_bit_of_the_packet_is_noticed(frame: bytes):
    """With any bit changed that RFC 4861 protects a frame is refused; the others change nothing of it."""
    unprotected = {*range(12), *range(14, 18)}  # the frame's addresses; traffic class and flow label
    for at, damaged in enumerate(flips(frame)):
        with suppress(NeighbourError):
            packet = neighbour_discovery.decode(damaged)
            assert at // 8 in unprotected
            assert packet.target == ADDRESS


@given(st.one_of(st.binary(max_size=100), st.binary(max_size=60).map(lambda rest: ADVERTISEMENT[:54] + rest)))
def test_garbage_never_escapes(frame: bytes):
    """Any bytes give a packet or NeighbourError."""
    with suppress(NeighbourError):
        assert neighbour_discovery.decode(frame).kind in Kind


def test_a_solicitation_is_answered_to_its_source_alone():
    """It asks from an address, with our hardware address in it, so that nobody else hears the answer."""
    frame = neighbour_discovery.solicitation(MAC, "fe80::1", ADDRESS)
    assert checked(frame) == 0xFFFF
    assert frame[-8:] == b"\x01\x01" + MAC
    assert neighbour_discovery.decode(frame) == NeighbourPacket(
        kind=Kind.SOLICITATION, sender_mac=MAC, sender="fe80::1", target=ADDRESS
    )
