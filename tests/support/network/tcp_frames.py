"""Ethernet frames with one TCP segment or one ICMP error each, of any sender, and whatever sends them."""

import socket
import struct
from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final

from support.network.namespaces import INTERFACE, Node
from support.network.syn_flood import checksum

FIN, SYN, RST, ACK = 1, 2, 4, 16
_TYPES: Final = {4: 0x0800, 6: 0x86DD}
_ICMP: Final = {4: socket.IPPROTO_ICMP, 6: socket.IPPROTO_ICMPV6}


def segment(source: str, source_port: int, target: str, target_port: int, flags: int) -> bytes:
    """Return an IP packet with one segment without data."""
    head = struct.pack("!HHIIBBHHH", source_port, target_port, 1000, 1000, 0x50, flags, 64240, 0, 0)
    total = checksum(_pseudo(source, target, socket.IPPROTO_TCP, len(head)) + head)
    return _packet(source, target, socket.IPPROTO_TCP, head[:16] + struct.pack("!H", total) + head[18:])


def too_big(source: str, target: str, about: bytes, mtu: int) -> bytes:
    """Return the error of a router that a packet of `target` is larger than a link takes."""
    family = ip_address(target).version
    kind = (3, 4) if family == 4 else (2, 0)
    fields = struct.pack("!HH", 0, mtu) if family == 4 else struct.pack("!I", mtu)
    body = about + bytes(len(about) % 2)
    head = struct.pack("!BBH", *kind, 0) + fields + body
    pseudo = b"" if family == 4 else _pseudo(source, target, socket.IPPROTO_ICMPV6, len(head))
    found = struct.pack("!BBH", *kind, checksum(pseudo + head)) + fields + body
    return _packet(source, target, _ICMP[family], found)


def send(node: Node, frames: Iterable[tuple[bytes, bytes, bytes]]) -> None:
    """Send packets from a node: the MAC that gets each, the one that it is said to come from, the packet."""
    with node.inside(), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind((INTERFACE, 0))
        for target, source, packet in frames:
            sender.send(target + source + struct.pack("!H", _TYPES[packet[0] >> 4]) + packet)


def _packet(source: str, target: str, protocol: int, body: bytes) -> bytes:
    there, here = ip_address(target), ip_address(source)
    if there.version == 6:
        return struct.pack("!IHBB", 6 << 28, len(body), protocol, 64) + here.packed + there.packed + body
    ends = here.packed + there.packed
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0x4000, 64, protocol, 0) + ends
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + body


def _pseudo(source: str, target: str, protocol: int, length: int) -> bytes:
    ends = ip_address(source).packed + ip_address(target).packed
    if len(ends) == 8:
        return ends + struct.pack("!BBH", 0, protocol, length)
    return ends + struct.pack("!IHBB", length, 0, 0, protocol)
