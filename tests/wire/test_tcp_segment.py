"""A bare acknowledgement as bytes: its fields, and checksums that hold."""

import pytest

from appliance.wire.tcp_segment import bare_acknowledgement
from appliance.wire.vrrp.internet_checksum import holds

pytestmark = pytest.mark.pure


def test_ipv4():
    """A header that the kernel completes, then ports, sequence number and the flag."""
    packet = bare_acknowledgement("192.0.2.1", 80, "192.0.2.2", 4000, sequence=0x01020304)

    assert packet[:12].hex() == "450000000000000040060000"
    assert packet[12:20].hex() == "c0000201c0000202"
    assert packet[20:34].hex() == "00500fa0010203040000000050" + "10"
    assert holds(packet[12:20] + b"\0\x06\0\x14" + packet[20:])


def test_ipv6():
    """The whole header, and the same segment behind it."""
    packet = bare_acknowledgement("2001:db8::1", 80, "2001:db8::2", 4000, sequence=7)

    assert packet[:8].hex() == "6000000000140640"
    assert len(packet) == 60
    assert holds(packet[8:40] + b"\0\x06\0\x14" + packet[40:])
