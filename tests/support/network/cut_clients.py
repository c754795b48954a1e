"""Clients that end in every way there is: `python cut_clients.py SEED COUNT PORT ADDRESS...`.

Each connects, hears the server's name, and then closes, resets, vanishes without a word (TCP_REPAIR, as a
machine that loses its power does), stays half-closed until the server ends it, or never listened to the
answer of its SYN. It prints how many ended in which way, as JSON.
"""

import contextlib
import json
import random
import socket
import struct
import sys
from collections import Counter
from collections.abc import Callable

_AT_ONCE = 50
_PATIENCE = 5.0
_TCP_REPAIR = 19  # linux/tcp.h: a socket in this mode is closed without a packet
_RESET = struct.pack("ii", 1, 0)


def main() -> None:
    """Make so many connections, a few at a time."""
    seed, count, port = map(int, sys.argv[1:4])
    addresses, chosen = sys.argv[4:], random.Random(seed)  # noqa: S311  # which client does what
    counted: Counter[str] = Counter()
    held: list[tuple[str, socket.socket]] = []
    for _ in range(count):
        word = chosen.choice([*_WAYS, "half-open"])
        with contextlib.suppress(OSError):
            held.append((word, _connected(chosen.choice(addresses), port, word)))
        if len(held) >= _AT_ONCE:
            _end(held.pop(chosen.randrange(len(held))), counted)
    for each in held:
        _end(each, counted)
    sys.stdout.write(json.dumps(counted))


def _connected(address: str, port: int, word: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family)
    try:
        made.settimeout(_PATIENCE)
        if word == "half-open":
            made.settimeout(0)
            made.connect_ex((address, port))
        else:
            made.connect((address, port))
            made.recv(100)
    except OSError:
        made.close()
        raise
    return made


def _end(one: tuple[str, socket.socket], counted: Counter[str]) -> None:
    word, connection = one
    with connection, contextlib.suppress(OSError):
        _WAYS.get(word, vanish)(connection)
        counted[word] += 1


def _close(connection: socket.socket) -> None:
    connection.close()


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


def vanish(connection: socket.socket) -> None:
    """Have a connection be closed without a packet when it is closed."""
    connection.setsockopt(socket.IPPROTO_TCP, _TCP_REPAIR, 1)


def _half_close(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_WR)
    while connection.recv(100):
        pass


_WAYS: dict[str, Callable[[socket.socket], None]] = {
    "closed": _close,
    "reset": _reset,
    "vanished": vanish,
    "half-closed": _half_close,
}


if __name__ == "__main__":
    main()
