"""The HTTP server with clients that never stop, sit on places, or end early.

Clients that never stop are threads with plain sockets, which send as fast as they can.
"""

import gc
import socket
import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import gevent
import pytest
import structlog
from gevent import socket as sockets
from gevent import ssl as green_ssl
from structlog.testing import CapturingLogger
from support.processes.greenlets import until
from support.values.certificates import issue
from support.values.snapshots import bind

from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Stats
from appliance.stats import web_server
from appliance.stats.access import WebAccess
from appliance.stats.changes import Changes
from appliance.stats.figures import HistoryFile, LatestFigures
from appliance.stats.pages import Pages
from appliance.stats.web_server import MOST_CLIENTS, WebServer

pytestmark = pytest.mark.sockets

GET: Final = b"GET /static/page.css HTTP/1.1\r\nHost: lb\r\n\r\n"
_SHOWN: Final = b"Authorization: Basic %s\r\n" % b64encode(b"admin:s3cret")
KNOWN: Final = GET.replace(b"\r\n\r\n", b"\r\n%s\r\n" % _SHOWN)


class Page:
    """The server of the page behind a password, where it listens, and what it would print as tracebacks."""

    def __init__(
        self, directory: Path, *, context: ssl.SSLContext | None = None, open_: bool = False
    ) -> None:
        access = WebAccess(
            allowed=None,
            denied=None,
            credentials=None if open_ else b"admin:s3cret",
            context=context,
            certificate=b"",
            admin=not open_,
            token="t",  # noqa: S106  # of no page
        )
        log = structlog.wrap_logger(CapturingLogger(), processors=[])
        paths = Paths(runtime=directory, state=directory)
        self._figures = LatestFigures(paths, HistoryFile(paths.history, log), on_fault=print)
        changes = Changes(paths, self._figures, log)
        stats = Stats(bind=bind(0))
        pages = Pages(self._figures, lambda: access, lambda: stats, changes, on_denied=lambda _: None)
        listener = sockets.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen(1024)
        self.port = listener.getsockname()[1]
        self._server = WebServer(listener, pages, lambda: access, self)
        self._server.start()

    def write(self, text: str) -> None:
        """Take what the server says of bad requests."""

    def connect(self, source: str = "127.0.0.1") -> sockets.socket:
        """Return a connection that does not block other greenlets."""
        return sockets.create_connection(("127.0.0.1", self.port), 20.0, source_address=(source, 0))

    def asked(self, request: bytes = KNOWN, source: str = "127.0.0.1") -> bytes:
        """Ask on a new connection, and return the first line of the answer."""
        with gevent.Timeout(20), self.connect(source) as client:
            return ask(client, request)

    def close(self) -> None:
        """Stop."""
        self._server.stop(timeout=0)
        self._figures.close()


def ask(client: sockets.socket, request: bytes = KNOWN) -> bytes:
    """Return the first line of the answer, nothing where the connection was closed."""
    with suppress(ConnectionError):
        client.sendall(request)
        return bytes(client.recv(65536)).partition(b"\r\n")[0]
    return b""


@pytest.fixture
def tracebacks(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return what greenlets ended by, and what the server reported as a bug."""
    found: list[object] = []
    monkeypatch.setattr(gevent.get_hub(), "handle_error", lambda *error: found.append(error[2]))
    return found


@contextmanager
def _no_collection() -> Iterator[None]:
    """Collect no cycle: the program, too, collects seldom, and what waits for it keeps its descriptor."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _to_the_end(client: sockets.socket) -> bool:
    """Read until the server has closed the connection."""
    with suppress(ConnectionError):
        while client.recv(65536):
            pass
    return True


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    """Run the page behind a password."""
    made = Page(tmp_path)
    yield made
    made.close()


@contextmanager
def hostile(port: int, request: bytes, *, count: int, wrap: ssl.SSLContext | None = None) -> Iterator[None]:
    """Run clients that send a request as often as they can, and read whatever is answered."""
    ending = threading.Event()

    def read(client: socket.socket) -> None:
        with suppress(OSError):
            while client.recv(65536):
                pass

    def run() -> None:
        while not ending.is_set():
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0) as plain:
                client = wrap.wrap_socket(plain) if wrap else plain
                threading.Thread(target=read, args=(client,), daemon=True).start()
                while not ending.is_set() and request:
                    client.sendall(request * 100)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(count)]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        ending.set()
        for each in threads:
            gevent.get_hub().threadpool.apply(each.join, (10.0,))


@pytest.mark.parametrize("request_", [GET, KNOWN, b""], ids=["stranger", "known", "connects"])
def test_a_client_that_never_stops_holds_nobody_up(page: Page, request_: bytes):
    """The program's timers fire, which its heartbeat is one of, and others are answered."""
    with gevent.Timeout(40), hostile(page.port, request_, count=4):
        for _ in range(20):
            gevent.sleep(0.005)
        assert page.asked(source="127.0.0.9") == b"HTTP/1.1 200 OK"


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Page]:
    """Run the page by TLS."""
    files = issue(tmp_path, "localhost")
    context = green_ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.chain, files.key)
    made = Page(tmp_path, context=context)
    yield made
    made.close()


def test_handshakes_without_end_hold_nobody_up(secured: Page):
    """With TLS, too."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    with gevent.Timeout(40), hostile(secured.port, b"", count=4, wrap=trusting):
        for _ in range(20):
            gevent.sleep(0.005)


@pytest.mark.parametrize("says", [b"", b"\x16", GET], ids=["nothing", "begins", "no-tls"])
def test_a_handshake_that_does_not_end_leaves_no_descriptor(
    secured: Page, says: bytes, monkeypatch: pytest.MonkeyPatch
):
    """The client's connection is closed, by the deadline or as its bytes are not TLS, and is given back."""
    monkeypatch.setattr(web_server, "HEAD_SECONDS", 0.2)
    before = _descriptors()
    with gevent.Timeout(20), ExitStack() as stack, _no_collection():
        clients = [stack.enter_context(secured.connect()) for _ in range(20)]
        for each in clients:
            each.sendall(says)
        for each in clients:
            assert _to_the_end(each)
        until(lambda: _descriptors() - before == len(clients), what="their descriptors are closed")


def test_who_must_go_within_a_handshake_leaves_no_descriptor(secured: Page, monkeypatch: pytest.MonkeyPatch):
    """More clients than there are places: of each that has to go, the connection is closed at once."""
    monkeypatch.setattr(web_server, "HEAD_SECONDS", 3600.0)
    before = _descriptors()
    with gevent.Timeout(20), ExitStack() as stack, _no_collection():
        clients = [stack.enter_context(secured.connect()) for _ in range(MOST_CLIENTS + 20)]
        for each in clients:
            each.sendall(b"\x16")
        gevent.sleep(0.1)
        assert _descriptors() - before <= len(clients) + MOST_CLIENTS


@pytest.mark.parametrize("says", [b"", b"GET / HT", GET], ids=["nothing", "half", "no-password"])
def test_who_has_no_password_keeps_nobody_out(
    page: Page, says: bytes, tracebacks: list[object], monkeypatch: pytest.MonkeyPatch
):
    """More connections than there are places, of the same address: who shows the password is answered."""
    monkeypatch.setattr(web_server, "HEAD_SECONDS", 3600.0)  # nobody's place is free because of that
    with ExitStack() as stack:
        for _ in range(MOST_CLIENTS + 10):
            stack.enter_context(page.connect()).sendall(says)
        gevent.sleep(0.05)
        for _ in range(3):
            assert page.asked() == b"HTTP/1.1 200 OK"
    assert tracebacks == []


def test_who_has_shown_the_password_keeps_the_place(page: Page):
    """However many come after."""
    with ExitStack() as stack:
        known = stack.enter_context(page.connect())
        assert ask(known) == b"HTTP/1.1 200 OK"
        for _ in range(2 * MOST_CLIENTS):
            stack.enter_context(page.connect())
        gevent.sleep(0.05)
        assert ask(known) == b"HTTP/1.1 200 OK"


@pytest.mark.parametrize("how", [{}, {"open_": True}], ids=["password", "no-password"])
def test_who_comes_from_elsewhere_keeps_the_place(tmp_path: Path, how: dict[str, bool]):
    """Of the address that has most connections one has to go; one of another address stays."""
    page = Page(tmp_path, **how)
    with ExitStack() as stack:
        other = stack.enter_context(page.connect("127.0.0.9"))
        for _ in range(2 * MOST_CLIENTS):
            stack.enter_context(page.connect())
        gevent.sleep(0.05)
        assert ask(other) == b"HTTP/1.1 200 OK"
    page.close()


@pytest.mark.parametrize("body", [b"", b"token=t"])
def test_a_form_that_ends_early_is_refused(page: Page, body: bytes, tracebacks: list[object]):
    """In words of HTTP, without a traceback."""
    with gevent.Timeout(20), page.connect() as client:
        client.sendall(
            b"POST /servers HTTP/1.1\r\nHost: lb\r\n" + _SHOWN + b"Content-Length: 100\r\n\r\n" + body
        )
        client.shutdown(socket.SHUT_WR)
        assert client.recv(65536).startswith(b"HTTP/1.1 400 Bad Request")
    assert tracebacks == []
