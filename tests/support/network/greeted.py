"""Clients at a steady rate that ask who is there: `python greeted.py HOST PORT RATE`, until TERM.

One line for each connection when it has ended: when it began (monotonic seconds), and who answered, or the
error. `refused` is a connection that nobody took, `lost` one that ended without a name.
"""

import errno
import selectors
import signal
import socket
import sys
import time

_PATIENCE = 10.0
_WORDS = {errno.ECONNREFUSED: "!refused", errno.ECONNRESET: "!reset"}


def main() -> None:
    """Connect until asked to end, then wait for what is under way."""
    host, port, rate = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    clients, begun = selectors.DefaultSelector(), time.monotonic()
    number = 0
    while not ended or clients.get_map():
        now = time.monotonic()
        while not ended and now >= begun + number / rate:
            number += 1
            _connect(clients, family, host, port)
        until = begun + number / rate - now
        for key, _ in clients.select(max(0.0, until) if not ended else 0.05):
            _ended(clients, key)
        for key in [key for key in clients.get_map().values() if now - key.data > _PATIENCE]:
            _tell(clients, key, "!timeout")


def _connect(clients: selectors.BaseSelector, family: int, host: str, port: int) -> None:
    connection = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    connection.connect_ex((host, port))
    clients.register(connection, selectors.EVENT_READ, time.monotonic())


def _ended(clients: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
    connection = key.fileobj
    assert isinstance(connection, socket.socket)
    try:
        name = connection.recv(100).decode().strip()
    except BlockingIOError:
        return
    except OSError as error:
        _tell(clients, key, _WORDS.get(error.errno or 0, f"!{error.strerror}"))
        return
    _tell(clients, key, name or "!lost")


def _tell(clients: selectors.BaseSelector, key: selectors.SelectorKey, word: str) -> None:
    clients.unregister(key.fileobj)
    assert isinstance(key.fileobj, socket.socket)
    key.fileobj.close()
    sys.stdout.write(f"{key.data:.4f} {word}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
