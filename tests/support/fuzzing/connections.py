"""Whole connections as inputs of a server, and nothing that is left of them."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Final

import gevent
from gevent import socket
from support.processes.processes import descriptors

PATIENCE: Final = 20.0
"""Seconds after which a server that does not end a conversation has failed."""


@contextlib.contextmanager
def nothing_left() -> Iterator[None]:
    """Demand that as many descriptors are open afterwards as before."""
    before = descriptors(os.getpid())
    yield
    with gevent.Timeout(PATIENCE):
        while descriptors(os.getpid()) > before:
            gevent.sleep(0.01)


def conversation(connect: Callable[[], socket.socket], data: bytes) -> None:
    """Send an input in pieces, and its end, and take all that comes until the other side ends too."""
    random = Random(data)  # noqa: S311  # has to be the same again
    with gevent.Timeout(PATIENCE), connect() as client, contextlib.suppress(OSError):
        reader = gevent.spawn(_read_all, client)
        for piece in _pieces(data, random):
            client.sendall(piece)
            gevent.sleep(0)
        client.shutdown(socket.SHUT_WR)
        reader.join()


def _read_all(client: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while client.recv(65536):
            pass


def _pieces(data: bytes, random: Random) -> list[bytes]:
    cuts = sorted(random.randint(0, len(data)) for _ in range(random.randint(0, 3)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def unix(path: Path) -> Callable[[], socket.socket]:
    """Return the function that connects to a path."""

    def connect() -> socket.socket:
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(path))
        return client

    return connect
