"""Sends advertisements that no router of the test has made: foreign, wrong, damaged and plain garbage."""

import ipaddress
import socket
import struct
from collections.abc import Iterator
from random import Random
from typing import Final

from support.network.namespaces import INTERFACE, Node
from support.vrrp.vrrp_packets import VRRP, checksum

_GROUP: Final = "224.0.0.18"
_GROUP_MAC: Final = bytes.fromhex("01005e000012")


class Forger:
    """Puts IPv4 frames on the segment from a node, with any source address. Use it as a context manager."""

    def __init__(self, node: Node) -> None:
        self._mac = bytes.fromhex(node.mac.replace(":", ""))
        with node.inside():
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
            self._socket.bind((INTERFACE, 0))

    def __enter__(self) -> "Forger":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, body: bytes, *, source: str, ttl: int = 255) -> None:
        """Send one body to the group of VRRP."""
        addresses = _packed(source) + _packed(_GROUP)
        header = struct.pack("!BBHHHBBH", 0x45, 0xC0, 20 + len(body), 0, 0, ttl, VRRP, 0) + addresses
        header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
        frame = _GROUP_MAC + self._mac + b"\x08\x00" + header + body
        self._socket.send(frame.ljust(60, b"\0"))


def advert(
    *,
    source: str,
    version: int = 3,
    kind: int = 1,
    router_id: int = 42,
    priority: int = 254,
    interval: int = 10,
    addresses: tuple[str, ...] = ("192.0.2.100",),
    pseudo_header: bool = True,
    password: bytes = b"",
) -> bytes:
    """Return the body of an advertisement with a right checksum; `interval` is in the unit of the version."""
    timing = interval if version == 3 else (bool(password) << 8) | interval
    head = struct.pack("!BBBBH", version << 4 | kind, router_id, priority, len(addresses), timing)
    tail = b"".join(_packed(each) for each in addresses)
    tail += password.ljust(8, b"\0") if version == 2 else b""
    covered = head + b"\0\0" + tail
    if version == 3 and pseudo_header:
        covered = _packed(source) + _packed(_GROUP) + struct.pack("!BBH", 0, VRRP, len(covered)) + covered
    return head + struct.pack("!H", checksum(covered)) + tail


def damaged(body: bytes, *, seed: int) -> Iterator[bytes]:
    """Yield the body with each bit flipped, cut at each byte, with a tail, and garbage of any size."""
    random = Random(seed)  # noqa: S311  # the same garbage every time
    for position in range(len(body) * 8):
        yield _flipped(body, position)
    for size in range(len(body)):
        yield body[:size]
    for size in range(1, 60):
        yield body + random.randbytes(size)
    for size in range(120):
        yield random.randbytes(size)


def _flipped(body: bytes, position: int) -> bytes:
    byte, bit = divmod(position, 8)
    return body[:byte] + bytes([body[byte] ^ (1 << bit)]) + body[byte + 1 :]


def _packed(address: str) -> bytes:
    return ipaddress.ip_address(address).packed
