"""Addresses as the kernel writes them are read for what they are."""

import socket
import struct

import pytest

from appliance.wire import literal, sockaddr

pytestmark = pytest.mark.pure


def inet(host: str, port: int) -> bytes:
    """Return a sockaddr_in, in a buffer of the larger size."""
    address = struct.pack("=H", sockaddr.IPV4) + port.to_bytes(2, "big") + socket.inet_aton(host)
    return address.ljust(sockaddr.SIZE, b"\0")


def inet6(host: str, port: int) -> bytes:
    """Return a sockaddr_in6."""
    head = struct.pack("=H", sockaddr.IPV6) + port.to_bytes(2, "big") + bytes(4)
    return head + socket.inet_pton(socket.AF_INET6, host) + bytes(4)


@pytest.mark.parametrize(
    ("raw", "packed", "text"),
    [
        (inet("10.0.0.1", 443), bytes([10, 0, 0, 1]), "10.0.0.1:443"),
        (inet6("::ffff:10.0.0.1", 443), bytes([10, 0, 0, 1]), "10.0.0.1:443"),
        (inet6("2001:db8::1", 65535), bytes.fromhex("20010db8" + "0" * 23 + "1"), "[2001:db8::1]:65535"),
    ],
)
def test_address_is_read(raw: bytes, packed: bytes, text: str):
    """Both families are read, and an IPv4 client of an IPv6 socket is one of IPv4."""
    assert sockaddr.packed(raw) == packed
    assert sockaddr.text(raw) == text


@pytest.mark.parametrize("host", ["10.0.0.1", "2001:db8::1"])
def test_address_is_made(host: str):
    """It is the whole structure, whose size the kernel checks, without a port."""
    address = literal.packed(host)
    made = sockaddr.raw(address)

    assert made == (inet6(host, 0) if ":" in host else inet(host, 0)[:16])
    assert (sockaddr.packed(made), sockaddr.port(made)) == (address, 0)


def test_families_are_the_kernels():
    """The numbers are those of this system."""
    assert (socket.AF_INET, socket.AF_INET6) == (sockaddr.IPV4, sockaddr.IPV6)
