"""A worker whose control socket is asked without end: its connections do not notice."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from support.worker.trace import Origin, Setting, relay

pytestmark = pytest.mark.programs


@contextmanager
def asked_without_end(path: Path, question: bytes, *, count: int) -> Iterator[list[int]]:
    """Have clients ask as fast as they can, and read all that is answered; gives the sizes of it."""
    ending, read = threading.Event(), list[int]()

    def take(client: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 16):
                read.append(len(data))

    def ask() -> None:
        with suppress(OSError), socket.socket(socket.AF_UNIX) as client:
            client.settimeout(5.0)
            client.connect(str(path))
            threading.Thread(target=take, args=(client,), daemon=True).start()
            while not ending.is_set():
                client.sendall(question * 100)

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(count)]
    for each in threads:
        each.start()
    try:
        yield read
    finally:
        ending.set()
        for each in threads:
            each.join(10.0)


@pytest.mark.parametrize(
    "question",
    [
        b'{"command": "sessions"}\n',
        pytest.param(b'{"command": "status"}\n', marks=pytest.mark.slow("another question")),
        pytest.param(b"\n", marks=pytest.mark.slow("another question")),
    ],
)
def test_bytes_move_while_the_control_socket_is_asked_without_end(question: bytes):
    """Hundreds of round trips on an open connection, and a new one, are made meanwhile."""
    with relay(Setting(origins=[Origin()])) as running:
        pairs = [running.pair() for _ in range(20)]
        client, server = pairs[0]
        with asked_without_end(running.worker.control, question, count=4) as answered:
            begun, trips = time.monotonic(), 0
            while trips < 300 or time.monotonic() - begun < 1.0:
                client.sendall(b"ping")
                assert server.recv(4) == b"ping"
                server.sendall(b"pong")
                assert client.recv(4) == b"pong"
                trips += 1
            pairs.append(running.pair())
        assert question == b"\n" or answered
        assert len(running.sessions()) == 21
