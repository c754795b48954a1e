"""A program that sends ACKs of connections that do not exist: `ack_flood.py INTERFACE MAC HOST PORT RATE`.

They come from 198.18.0.0/15 (RFC 2544), as in `syn_flood`, so many a second.
"""

import itertools
import socket
import sys
import time
from collections.abc import Iterator
from random import Random
from typing import Final

from support.network import tcp_frames

_COUNT: Final = 40_000
_BURST: Final = 0.005


def frames(mac: bytes, host: str, port: int) -> Iterator[bytes]:
    """Yield Ethernet frames with one ACK each."""
    random = Random(1)  # noqa: S311  # senders, no secrets
    own = bytes.fromhex("020000000063")
    for number in range(_COUNT):
        source = f"198.{18 + number % 2}.{random.randrange(256)}.{random.randrange(1, 255)}"
        packet = tcp_frames.segment(source, random.randrange(1024, 65536), host, port, tcp_frames.ACK)
        yield mac + own + b"\x08\x00" + packet


def main(interface: str, mac: str, host: str, port: str, rate: str) -> None:
    """Send until somebody ends us."""
    made = itertools.cycle(frames(bytes.fromhex(mac.replace(":", "")), host, int(port)))
    burst = round(int(rate) * _BURST)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind((interface, 0))
        due = time.monotonic()
        while True:
            for each in itertools.islice(made, burst):
                sender.send(each)
            due = max(due + _BURST, time.monotonic() - _BURST)
            time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    main(*sys.argv[1:])
