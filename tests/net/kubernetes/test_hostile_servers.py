"""API servers that never come to an end: each is given up in its time, and named, and costs little."""

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
import trustme
from support.discovery.kube_api import NAME, credentials
from support.peers.hostile import HELLO_REQUESTS
from support.processes.waiting import wait_until

from appliance.core.discovery import retries
from appliance.model.snapshot.discovery import MASTERS, ApiAddress, Kubernetes
from appliance.net.kubernetes import api_connection, reflector
from appliance.net.kubernetes.reflector import ApiServers, Failed, Reflector, Seen
from appliance.wire.kubernetes import requests

pytestmark = pytest.mark.sockets

_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
_EVENT: Final = b'{"type":"BOOKMARK","object":{"kind":"Node","metadata":{"resourceVersion":"8"}}}\n'


def chunk(data: bytes) -> bytes:
    """Return a chunk of a body (RFC 9112 section 7.1)."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def page(more: bytes = b"") -> bytes:
    """Return a whole answer with a page of a list that has no objects."""
    listed = b'{"metadata":{"resourceVersion":"7","continue":"%s"},"items":[]}' % more
    if not more:
        listed = listed.replace(b',"continue":""', b"")
    return _HEAD + chunk(listed) + chunk(b"")


def drip(data: bytes) -> Iterator[bytes]:
    """Yield a beginning, then byte by byte, for ever."""
    yield data
    while True:
        time.sleep(0.02)
        yield b"x"


def again(data: bytes) -> Iterator[bytes]:
    """Yield the same for ever."""
    while True:
        yield data


def answers(stream: Callable[[], Iterator[bytes]], *, lists: bool) -> Callable[[bytes], Iterator[bytes]]:
    """Return what a server says to requests: the stream, to those for watches alone where lists are good."""
    return lambda head: iter([page()]) if lists and b"watch=1" not in head else stream()


@contextlib.contextmanager
def server(
    context: ssl.SSLContext | None, says: Callable[[bytes], Iterator[bytes]]
) -> Iterator[tuple[int, list[bytes]]]:
    """Run a server; give its port and the requests that it got."""
    heads: list[bytes] = []

    def serve(plain: socket.socket) -> None:
        with plain, contextlib.suppress(OSError):
            connection = context.wrap_socket(plain, server_side=True) if context else plain
            while head := connection.recv(65536):
                heads.append(head)
                for piece in says(head):
                    connection.sendall(piece)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1], heads
        listener.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def authority() -> trustme.CA:
    """Return who signs for the servers."""
    return trustme.CA()


@pytest.fixture
def context(authority: trustme.CA) -> ssl.SSLContext:
    """Return what a server of the cluster speaks TLS with."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(NAME).configure_cert(made)
    return made


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_connection, "SILENCE", 0.5)
    monkeypatch.setattr(api_connection, "LIST", 0.5)
    monkeypatch.setattr(api_connection, "CONNECT", 1.0)
    monkeypatch.setattr(retries, "FIRST", 0.05)
    monkeypatch.setattr(retries, "LONGEST", 0.2)


@contextlib.contextmanager
def reflecting(
    directory: Path, authority: trustme.CA, port: int, tell: Callable[[Seen | Failed], None]
) -> Iterator[None]:
    """Run a reflector beside one server."""
    files = credentials(directory, authority)
    settings = Kubernetes(
        kubeconfig=None,
        token_file=str(files.token),
        ca=str(files.authority),
        api=(ApiAddress(host="127.0.0.1", port=port),),
        server_name=None,
        family=None,
    )
    subject = Reflector(requests.nodes(MASTERS), settings, ApiServers(), tell)
    subject.start()
    yield
    subject.stop()


@pytest.mark.parametrize(
    ("stream", "lists"),
    [
        (lambda: drip(b"HTTP/1.1 200 O"), False),
        (lambda: drip(b"HTTP/1.1 200 OK\r\nX-Long: "), False),
        (lambda: drip(_HEAD + b"1"), False),
        (lambda: drip(_HEAD + chunk(_EVENT) + b"ffff;"), True),
        (lambda: again(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000), False),
    ],
    ids=["status line", "header", "list", "watch", "continue"],
)
def test_who_never_comes_to_an_end_is_given_up_and_named(
    tmp_path: Path,
    authority: trustme.CA,
    context: ssl.SSLContext,
    stream: Callable[[], Iterator[bytes]],
    lists: bool,  # noqa: FBT001  # a column of the table
):
    """The deadline is for the whole answer: a byte now and then does not put it off."""
    told: list[Seen | Failed] = []
    with (
        server(context, answers(stream, lists=lists)) as (port, _),
        reflecting(tmp_path, authority, port, told.append),
    ):
        wait_until(lambda: any(isinstance(each, Failed) for each in told), what="it is given up")
    failed = next(each for each in told if isinstance(each, Failed))
    assert (failed.server, failed.reason) == (f"127.0.0.1:{port}", "silent")


def test_a_handshake_that_never_ends_is_given_up(tmp_path: Path, authority: trustme.CA):
    """OpenSSL reads on and on; the connection is shut down under it."""
    told: list[Seen | Failed] = []
    with (
        server(None, lambda _: again(HELLO_REQUESTS * 20)) as (port, _),
        reflecting(tmp_path, authority, port, told.append),
    ):
        wait_until(lambda: told, what="it is given up")
    assert isinstance(told[0], Failed)
    assert told[0].server == f"127.0.0.1:{port}"


def test_a_list_without_end_is_given_up(
    tmp_path: Path, authority: trustme.CA, context: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
):
    """Pages that always name a next one, with no objects in them: so many, and no more."""
    monkeypatch.setattr(reflector, "_MOST_PAGES", 5)
    told: list[Seen | Failed] = []
    with (
        server(context, lambda _: iter([page(b"next")])) as (port, heads),
        reflecting(tmp_path, authority, port, told.append),
    ):
        wait_until(lambda: told, what="it is given up")
    assert told[0] == Failed(
        reflector=told[0].reflector,
        server=f"127.0.0.1:{port}",
        reason="too-large",
        message="a list of more than 5 pages",
    )
    assert len(heads) >= 5


def test_a_flood_of_events_costs_a_part_of_a_processor(
    tmp_path: Path, authority: trustme.CA, context: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
):
    """Events without end are taken, and the thread rests in between."""
    monkeypatch.setattr(api_connection, "SILENCE", 60.0)
    times: list[tuple[float, float]] = []

    def tell(_: Seen | Failed) -> None:
        times.append((time.thread_time(), time.monotonic()))

    flood = chunk(_EVENT * 500)
    with (
        server(context, answers(lambda: again_after_head(flood), lists=True)) as (port, _),
        reflecting(tmp_path, authority, port, tell),
    ):
        wait_until(lambda: times and times[-1][1] - times[0][1] > 1.5, what="a while of it")
    worked, took = (last - first for first, last in zip(times[0], times[-1], strict=True))
    assert len(times) > 5
    assert worked / took < 0.4


def again_after_head(data: bytes) -> Iterator[bytes]:
    """Yield the head of an answer, and a body without end."""
    yield _HEAD
    yield from again(data)
