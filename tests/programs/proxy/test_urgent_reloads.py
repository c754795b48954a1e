"""TCP urgent data (MSG_OOB) in a storm of reloads: every byte arrives once, in its place (RFC 6093).

HAProxy 2.6 passes all other bytes on, and drops the urgent ones.
"""

import hashlib
import random
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Final, Literal

import pytest
from support.network.ports import free_port
from support.peers.haproxy import HAProxy
from support.processes.processes import cpu_seconds
from support.processes.waiting import patient, wait_until
from support.proxy.lone_proxy import LoneProxy
from support.values.snapshots import bind, frontend, group, pool, server, snapshot

from appliance.model.snapshot.snapshot import Reload, Snapshot

pytestmark = [
    pytest.mark.programs,
    pytest.mark.data_path,
    pytest.mark.slow("generations of real workers under load"),
]

Sessions = Literal["move", "drain"]

_PIECES: Final = (1, 40, 3000, 70_000)
"""Largest pieces of the sessions: from a conversation to bulk, which workers splice."""

_HAPROXY: Final = """
global
    stats socket {control}
defaults
    mode tcp
    timeout connect 5s
    timeout client 60s
    timeout server 60s
listen urgent
    bind 127.0.0.1:{port}
    server own 127.0.0.1:{server}
"""


class Stream:
    """One direction of a session: pieces of random size, of which some are urgent, and what came of them."""

    def __init__(
        self, sender: socket.socket, receiver: socket.socket, *, largest: int, over: threading.Event
    ) -> None:
        self._sender = sender
        self._receiver = receiver
        self._largest = largest
        self._over = over
        self._random = random.Random(largest)  # noqa: S311  # no secret
        self.urgent = 0

    def send(self) -> str:
        """Send until it is over, then end the direction; return the digest of all bytes."""
        digest = hashlib.sha256()
        while not self._over.is_set():
            piece = self._random.randbytes(self._random.randint(1, self._largest))
            if self._random.random() < 0.3:
                self.urgent += 1
                # With more than one byte only the last is urgent; a call may take a part.
                piece = piece[: self._sender.send(piece, socket.MSG_OOB)]
            else:
                self._sender.sendall(piece)
            digest.update(piece)
            self._over.wait(0.001)
        self._sender.shutdown(socket.SHUT_WR)
        return digest.hexdigest()

    def receive(self) -> str:
        """Return the digest of all bytes that have come when the direction ends."""
        digest = hashlib.sha256()
        while data := self._receiver.recv(1 << 16):
            digest.update(data)
        return digest.hexdigest()


class Exchange:
    """Sessions by a proxy in both directions at once, until `end`."""

    def __init__(self, stack: ExitStack, port: int, origin: socket.socket) -> None:
        self._over = threading.Event()
        self.streams: list[Stream] = []
        for largest in _PIECES:
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=patient(60)))
            client.sendall(b"!")
            own = stack.enter_context(origin.accept()[0])
            own.settimeout(patient(60))
            assert own.recv(1) == b"!"
            self.streams += [
                Stream(*ends, largest=largest, over=self._over) for ends in ((client, own), (own, client))
            ]
        threads = stack.enter_context(ThreadPoolExecutor(2 * len(self.streams)))
        stack.callback(self._over.set)  # before the threads are waited for
        self._done: list[tuple[Future[str], Future[str]]] = [
            (threads.submit(each.send), threads.submit(each.receive)) for each in self.streams
        ]

    def progress(self) -> None:
        """Wait until each direction has had some more urgent pieces."""
        before = [each.urgent for each in self.streams]
        wait_until(
            lambda: all(each.urgent > count + 2 for each, count in zip(self.streams, before, strict=True)),
            what="all go on",
            timeout=60.0,
        )

    def end(self) -> list[tuple[str, str]]:
        """End all; return by direction the digests of what was sent, and of what arrived."""
        self._over.set()
        return [(sent.result(), arrived.result()) for sent, arrived in self._done]


@contextmanager
def _origin() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(patient(60))
        yield listener


def _snapshot(number: int, port: int, origin: socket.socket, sessions: Sessions = "move") -> Snapshot:
    """Return a snapshot; another number of workers needs a new generation."""
    return snapshot(
        number=number,
        groups=[group(workers=1 + number % 2, frontends=[frontend(binds=[bind(port)])])],
        pools=[pool(servers=[server(port=origin.getsockname()[1])])],
        reload=Reload(sockets=(), max_draining=10, sessions=sessions),
        drain=600.0,
    )


@pytest.mark.parametrize(("sessions", "reloads"), [("move", 12), ("drain", 5)])
def test_every_byte_arrives_once_in_a_storm_of_reloads(sessions: Sessions, reloads: int):
    """No session hangs, loses or doubles a byte, whether it moves or stays in a worker that drains."""
    port = free_port()
    with (
        _origin() as origin,
        LoneProxy(_snapshot(1, port, origin, sessions)) as proxy,
        ExitStack() as stack,
    ):
        proxy.run()
        exchange = Exchange(stack, port, origin)
        for number in range(2, 2 + reloads):
            exchange.progress()
            proxy.reload(_snapshot(number, port, origin, sessions))
        exchange.progress()
        generations = 1 if sessions == "move" else 2
        wait_until(
            lambda: len(proxy.generations()) == generations, what="they are where they belong", timeout=60.0
        )
        assert all(sent == arrived for sent, arrived in exchange.end())


def test_urgent_bytes_that_nobody_takes_cost_no_processor_time_after_reloads():
    """They wait at a receiver that does not read, in bulk and in small, with sessions that have moved."""
    port = free_port()
    with _origin() as origin, LoneProxy(_snapshot(1, port, origin)) as proxy, ExitStack() as stack:
        proxy.run()
        sent = []
        for _ in range(4):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=patient(60)))
            client.sendall(b"!")
            own = stack.enter_context(origin.accept()[0])
            own.settimeout(patient(60))
            sent.append((client, own, bytearray(b"!")))
        for number in range(2, 7):
            for client, _, data in sent:
                _jam(client, data)
            proxy.reload(_snapshot(number, port, origin))
            wait_until(lambda: len(proxy.generations()) == 1, what="all have moved", timeout=60.0)
        pids = [int(str(each["pid"])) for each in proxy.workers()]
        before = sum(map(cpu_seconds, pids))
        threading.Event().wait(2.0)
        assert sum(map(cpu_seconds, pids)) - before < 0.5
        for client, own, data in sent:
            client.shutdown(socket.SHUT_WR)
            got = b"".join(iter(lambda own=own: own.recv(1 << 16), b""))  # type: ignore[misc]  # mypy and defaults
            assert hashlib.sha256(got).digest() == hashlib.sha256(data).digest()


def _jam(client: socket.socket, data: bytearray) -> None:
    """Send urgent and other bytes until no more are taken."""
    client.setblocking(False)  # noqa: FBT003  # the standard library's signature
    pieces = random.Random(len(data))  # noqa: S311  # no secret
    with ExitStack() as stack:
        stack.callback(client.settimeout, patient(60))
        while True:
            try:
                for flags in (0, socket.MSG_OOB):
                    piece = pieces.randbytes(50_000)
                    data += piece[: client.send(piece, flags)]
            except BlockingIOError:
                return


@pytest.mark.needs("haproxy")
def test_haproxy_drops_what_is_urgent_and_nothing_else():
    """So whoever comes from HAProxy has more bytes here, and none less."""
    port = free_port()
    with _origin() as origin:
        text = _HAPROXY.replace("{port}", str(port)).replace("{server}", str(origin.getsockname()[1]))
        with HAProxy(text), socket.create_connection(("127.0.0.1", port), timeout=patient(60)) as client:
            client.sendall(b"before")
            with origin.accept()[0] as own:
                own.settimeout(patient(60))
                client.send(b"!", socket.MSG_OOB)
                client.sendall(b"after")
                got = b""
                while len(got) < len(b"beforeafter") and (piece := own.recv(100)):
                    got += piece
                # A read ends before an urgent byte. If the end of the direction has come by then, HAProxy may
                # take the short read for the last one, and drop what follows.
                client.shutdown(socket.SHUT_WR)
                assert (got, own.recv(100)) == (b"beforeafter", b"")
