"""ARP frames: announcements, probes, and what others send."""

import ipaddress
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fuzzing.damage import cuts, flips

from appliance.wire.ethernet import arp
from appliance.wire.ethernet.arp import ArpError, ArpPacket, GratuitousForm, Operation

pytestmark = pytest.mark.pure

MAC = bytes.fromhex("02005e102030")
ADDRESS = "192.0.2.100"
REQUEST = bytes.fromhex(
    "ffffffffffff02005e1020300806" + "0001080006040001" + "02005e102030c0000264" + "000000000000c0000264"
)
REPLY = bytes.fromhex(
    "ffffffffffff02005e1020300806" + "0001080006040002" + "02005e102030c0000264" + "02005e102030c0000264"
)
PROBE = bytes.fromhex(
    "ffffffffffff02005e1020300806" + "0001080006040001" + "02005e10203000000000" + "000000000000c0000264"
)

MACS = st.binary(min_size=6, max_size=6)
ADDRESSES = st.integers(0, 2**32 - 1).map(lambda number: str(ipaddress.IPv4Address(number)))


@pytest.mark.parametrize(
    ("form", "frame"), [(GratuitousForm.REQUEST, REQUEST), (GratuitousForm.REPLY, REPLY)]
)
def test_a_gratuitous_arp_is_written(form: GratuitousForm, frame: bytes):
    """Both forms go to everybody, with our address as sender and target."""
    assert arp.gratuitous(MAC, ADDRESS, form=form) == frame


def test_a_request_says_who_asks():
    """A request is a probe with its sender."""
    asked = arp.decode(arp.request(MAC, "192.0.2.9", ADDRESS))
    assert (asked.operation, asked.sender_mac, asked.sender, asked.target) == (
        arp.Operation.REQUEST,
        MAC,
        "192.0.2.9",
        ADDRESS,
    )


def test_a_probe_is_written():
    """A probe asks for the address and claims none: nobody's cache changes by it."""
    assert arp.probe(MAC, ADDRESS) == PROBE


@given(MACS, ADDRESSES, st.sampled_from(GratuitousForm))
def test_an_announcement_comes_back(mac: bytes, address: str, form: GratuitousForm):
    """What was announced is read as it was meant."""
    packet = ArpPacket(operation=form.value, sender_mac=mac, sender=address, target=address)
    assert arp.decode(arp.gratuitous(mac, address, form=form)) == packet


@given(MACS, ADDRESSES)
def test_a_probe_comes_back(mac: bytes, address: str):
    """A probe is read as a request from nobody."""
    packet = ArpPacket(operation=Operation.REQUEST, sender_mac=mac, sender="0.0.0.0", target=address)
    assert arp.decode(arp.probe(mac, address)) == packet


def test_filling_is_left_out():
    """The bytes that make a frame 60 long are not looked at."""
    assert arp.decode(REPLY + bytes(18)) == arp.decode(REPLY)


def test_a_part_is_refused():
    """A frame cut at any length is no ARP."""
    for part in cuts(REQUEST):
        with pytest.raises(ArpError, match="shorter"):
            arp.decode(part)


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        (13, 0x00, "ethertype"),
        (15, 0x06, "Ethernet"),
        (17, 0x01, "Ethernet"),
        (18, 0x08, "Ethernet"),
        (19, 0x10, "Ethernet"),
        (21, 0x00, "neither"),
        (21, 0x03, "neither"),
    ],
)
def test_what_is_no_arp_for_ipv4_is_refused(offset: int, value: int, message: str):
    """Other ethertypes, hardware, protocols and operations are refused, each by name."""
    frame = bytearray(REQUEST)
    frame[offset] = value
    with pytest.raises(ArpError, match=message):
        arp.decode(bytes(frame))


def test_a_changed_bit_never_escapes():
    """Every frame with one bit changed gives a packet or ArpError."""
    for damaged in flips(REPLY):
        with suppress(ArpError):
            assert arp.decode(damaged).operation in Operation


@given(st.binary(max_size=80))
def test_garbage_never_escapes(frame: bytes):
    """Any bytes give a packet or ArpError."""
    with suppress(ArpError):
        assert arp.decode(frame).operation in Operation
