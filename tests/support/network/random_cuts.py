"""Clients and servers that do a few things by chance and end at any moment, in every way there is.

`random_cuts.py clients SEED COUNT PORT ADDRESS...` makes connections and prints how they ended, as JSON;
`random_cuts.py server NAME PORT` serves until it is killed. Both lead the same life: they say or hear a
little or much, pause, half-close, and then close, reset, vanish without a word (TCP_REPAIR, as a machine that
loses its power does), or hear the other side to its end. A few clients end before they are connected.
"""

import contextlib
import json
import random
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

_AT_ONCE: Final = 40
_PATIENCE: Final = 5.0  # of a client that connects: seconds
_STEPS: Final = 5  # at most, of each side
_SHORT: Final = 0.02  # a pause or a wait, at most: seconds
_LITTLE: Final = 200  # bytes, at most
_MUCH: Final = 1 << 19
_CHUNK: Final = 1 << 16
_EARLY: Final = 0.1  # share of the clients that do not wait for their connection
_TCP_REPAIR: Final = 19  # linux/tcp.h: a socket in this mode is closed without a packet
_RESET: Final = struct.pack("ii", 1, 0)

SILENCE: Final = """
table inet vanished {
    chain output {
        type filter hook output priority 0
        tcp flags & (rst | ack) == rst drop
    }
}
"""
"""For nftables: what comes for a connection that has vanished gets no answer, as of a machine that is off.

A reset that somebody asked for, and the refusal of a port, have the flag ACK (RFC 9293, 3.5.2).
"""


def main() -> None:
    """Be clients, or a server."""
    if sys.argv[1] == "server":
        _serve(sys.argv[2], int(sys.argv[3]))
        return
    seed, count, port = map(int, sys.argv[2:5])
    sys.stdout.write(json.dumps(_come_and_go(seed, count, port, sys.argv[5:])))


def _serve(name: str, port: int) -> None:
    chosen = random.Random(name)  # noqa: S311  # which connection does what
    listener = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=4096)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_live, args=(connection, random.Random(chosen.random())), daemon=True).start()  # noqa: S311


def _come_and_go(seed: int, count: int, port: int, addresses: list[str]) -> Counter[str]:
    """Make so many connections, a few at a time."""
    counted: Counter[str] = Counter()
    numbers = iter(range(count))
    lock = threading.Lock()

    def come_and_go() -> None:
        while (number := _next(numbers, lock)) is not None:
            chosen = random.Random(f"{seed} {number}")  # noqa: S311  # which connection does what
            how = _visit(chosen, (chosen.choice(addresses), port))
            with lock:
                counted[how] += 1

    threads = [threading.Thread(target=come_and_go) for _ in range(_AT_ONCE)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return counted


def _next(numbers: Iterator[int], lock: threading.Lock) -> int | None:
    with lock:
        return next(numbers, None)


def _visit(chosen: random.Random, to: tuple[str, int]) -> str:
    """Connect, live and end; return how it ended."""
    connection = socket.socket(socket.AF_INET6 if ":" in to[0] else socket.AF_INET)
    if chosen.random() < _EARLY:
        connection.setblocking(False)  # noqa: FBT003  # the standard library's signature
        connection.connect_ex(to)
        time.sleep(chosen.random() * _SHORT / 10)
        return "early " + _end(connection, chosen)
    connection.settimeout(_PATIENCE)
    try:
        connection.connect(to)
    except OSError:
        connection.close()
        return "not connected"
    return _live(connection, chosen)


def _live(connection: socket.socket, chosen: random.Random) -> str:
    """Do a few things, which may fail as the other side does what it likes, and end."""
    with contextlib.suppress(OSError):
        for _ in range(chosen.randrange(_STEPS + 1)):
            chosen.choice(_THINGS)(connection, chosen)
    return _end(connection, chosen)


def _end(connection: socket.socket, chosen: random.Random) -> str:
    word = chosen.choice([*_ENDS])
    with connection, contextlib.suppress(OSError):
        _ENDS[word](connection)
    return word


def _say(connection: socket.socket, chosen: random.Random) -> None:
    connection.settimeout(_SHORT)
    connection.sendall(bytes(chosen.randint(1, _LITTLE)))


def _pour(connection: socket.socket, chosen: random.Random) -> None:
    connection.settimeout(_SHORT)
    connection.sendall(bytes(chosen.randint(1, _MUCH)))


def _hear(connection: socket.socket, chosen: random.Random) -> None:
    connection.settimeout(max(chosen.random() * _SHORT, 0.001))
    with contextlib.suppress(TimeoutError):
        connection.recv(_LITTLE)


def _drink(connection: socket.socket, chosen: random.Random) -> None:
    connection.settimeout(_SHORT)
    left = chosen.randint(1, _MUCH)
    with contextlib.suppress(TimeoutError):
        while left > 0 and (data := connection.recv(_CHUNK)):
            left -= len(data)


def _pause(_: socket.socket, chosen: random.Random) -> None:
    time.sleep(chosen.random() * _SHORT)


def _half_close(connection: socket.socket, _: random.Random) -> None:
    connection.shutdown(socket.SHUT_WR)


_THINGS: Final[list[Callable[[socket.socket, random.Random], None]]] = [
    *(_say, _say, _say),
    *(_hear, _hear, _hear),
    *(_pour, _drink, _pause, _half_close),
]


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


def _vanish(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, _TCP_REPAIR, 1)


def _hear_the_end(connection: socket.socket) -> None:
    connection.settimeout(_PATIENCE)
    connection.shutdown(socket.SHUT_WR)
    while connection.recv(_CHUNK):
        pass


_ENDS: Final[dict[str, Callable[[socket.socket], None]]] = {
    "closed": socket.socket.close,
    "reset": _reset,
    "vanished": _vanish,
    "half-closed": _hear_the_end,
}


if __name__ == "__main__":
    main()
