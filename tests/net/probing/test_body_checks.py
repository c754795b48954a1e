"""`expect_body`: a text that the body of an answer must have; real nginx, and beside a real HAProxy."""

import contextlib
import hashlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Final

import pytest
from support.network.ports import free_port
from support.peers.haproxy import HAProxy
from support.peers.nginx import nginx
from support.processes.waiting import wait_until
from support.values import snapshots

from appliance.core.checks.check_outcome import CheckOutcome
from appliance.model.check_results import CheckResult
from appliance.net.probing.probe import Probe
from appliance.net.probing.tls_contexts import TlsContexts

pytestmark = pytest.mark.sockets

_OK: Final = b"HTTP/1.1 200 OK\r\n"
_CHUNKED: Final = _OK + b"Transfer-Encoding: chunked\r\n\r\n"
TIMEOUT: Final = 2.0
GAP: Final = b""
"""Between two pieces of an answer: the second one comes later."""

ANSWERS: Final = {
    "text": (_OK + b"Content-Length: 7\r\n\r\nall ok\n",),
    "other-text": (_OK + b"Content-Length: 7\r\n\r\nall no\n",),
    "no-text": (_OK + b"Content-Length: 0\r\n\r\n",),
    "in-a-header": (_OK + b"X-State: ok\r\nContent-Length: 2\r\n\r\nno",),
    "bad-status": (b"HTTP/1.1 500 broken\r\nContent-Length: 2\r\n\r\nok",),
    "chunks": (_CHUNKED + b"1\r\no\r\n1\r\nk\r\n0\r\n\r\n",),
    "late-chunk": (_CHUNKED + b"1\r\no\r\n", GAP, b"1\r\nk\r\n"),
    "late": (_OK + b"Content-Length: 100\r\n\r\nxxxx", GAP, b"ok"),
    "cut-short": (_OK + b"Content-Length: 100\r\n\r\nxxok",),
    "until-close": (_OK + b"\r\nxx", GAP, b"ok"),
    "beyond-its-length": (_OK + b"Content-Length: 2\r\n\r\nnook",),
    "old-protocol": (b"HTTP/1.0 200 OK\r\n\r\nok",),
    "no-content": (b"HTTP/1.1 204 -\r\n\r\n",),
    "far-away": (_OK + b"Content-Length: 40002\r\n\r\n" + b"x" * 40_000 + b"ok",),
    "no-chunk": (_CHUNKED + b"zz\r\nok",),
    "no-length": (_OK + b"Content-Length: zz\r\n\r\nok",),
    "two-lengths": (_OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nok",),
    "no-header": (_OK + b"no colon here\r\nContent-Length: 2\r\n\r\nok",),
    "half-a-head": (_OK + b"X: y\r\n",),
    "silence": (_OK + b"Content-Length: 100\r\n\r\nxxxxxx", None),
}
"""What servers answer, in pieces; None is that the connection stays open and silent."""


@contextlib.contextmanager
def answering(pieces: tuple[bytes | None, ...]) -> Iterator[int]:
    """Run a server that gives every client this answer; yields its port."""
    stopped = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        thread = threading.Thread(target=_serve, args=(listener, pieces, stopped))
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            stopped.set()
            thread.join()


def _serve(listener: socket.socket, pieces: tuple[bytes | None, ...], stopped: threading.Event) -> None:
    clients: list[threading.Thread] = []
    while not stopped.is_set():
        with contextlib.suppress(TimeoutError):
            connection, _ = listener.accept()
            clients.append(threading.Thread(target=_answer, args=(connection, pieces, stopped)))
            clients[-1].start()
    for each in clients:
        each.join()


def _answer(connection: socket.socket, pieces: tuple[bytes | None, ...], stopped: threading.Event) -> None:
    connection.settimeout(10)
    with connection, contextlib.suppress(OSError):
        asked = b""
        while b"\r\n\r\n" not in asked and (data := connection.recv(4096)):
            asked += data
        for piece in pieces:
            if piece is None:
                connection.settimeout(None)
                stopped.wait(10)
            elif piece == GAP:
                time.sleep(0.1)  # what makes two segments of an answer
            else:
                connection.sendall(piece)


def probe(port: int, **changes: object) -> CheckOutcome:
    """Return the outcome of a check that wants the text `ok`, with any status."""
    settings = {"expect_body": "ok", "expect": ((100, 599),), "timeout": TIMEOUT, **changes}
    return Probe(snapshots.check("http", **settings), "127.0.0.1", port, TlsContexts()).run()


@pytest.mark.programs
@pytest.mark.needs("nginx")
@pytest.mark.parametrize("host", [None, "api.example.com"])
def test_a_server_with_the_text_passes(host: str | None):
    """Nginx says `ok` at /readyz and its name at /name, in answers of HTTP/1.0 and 1.1."""
    with nginx() as web:
        assert probe(web.port, path="/readyz", host=host).result is CheckResult.L7OK
        missing = probe(web.port, path="/name", expect_body="all is well", host=host)

    assert (missing.result, missing.status) == (CheckResult.L7RSP, 200)
    assert missing.detail.startswith("no `all is well` in ")


def test_statuses_are_judged_first():
    """A text does not make a bad status good; without a range for it, it is the status that is told."""
    with answering(ANSWERS["bad-status"]) as port:
        outcome = probe(port, expect=((200, 399),))

    assert (outcome.result, outcome.status, outcome.detail) == (CheckResult.L7STS, 500, "broken")


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        ("no-text", "no body"),
        ("far-away", "no `ok` in 16384 bytes of body"),
        ("no-chunk", "not the size of a chunk: b'zz\\r\\n'"),
        ("half-a-head", "no body"),
    ],
)
def test_the_detail_says_what_is_missing(answer: str, detail: str):
    """A body without the text, no body at all, and an answer that breaks the protocol are told apart."""
    with answering(ANSWERS[answer]) as port:
        outcome = probe(port)

    assert (outcome.result, outcome.detail) == (CheckResult.L7RSP, detail)


def test_a_server_that_says_nothing_is_no_answer():
    """The end before a status line is told with the bytes that came."""
    with answering((b"HTTP/1.1",)) as port:
        outcome = probe(port)

    assert (outcome.result, outcome.detail) == (
        CheckResult.L7RSP,
        "closed after 8 bytes, before a status line",
    )


@pytest.mark.programs
@pytest.mark.needs("haproxy")
def test_real_haproxy_judges_the_same():
    """Twenty answers, good and broken ones: HAProxy's check and ours give the same result for each."""
    with contextlib.ExitStack() as stack:
        ports = {name: stack.enter_context(answering(each)) for name, each in ANSWERS.items()}
        ours = {name: probe(port).result.value for name, port in ports.items()}
        haproxy = stack.enter_context(HAProxy(_haproxy_cfg(ports)))
        wait_until(
            lambda: set(haproxy.check_results()) == set(ours), what="HAProxy has checked all", timeout=60
        )
        theirs = haproxy.check_results()

    assert ours == theirs


DIGEST: Final = hashlib.md5(b"ok", usedforsecurity=False).hexdigest()


@pytest.mark.parametrize("answer", ["chunks", "until-close", "late", "no-text", "silence", "bad-status"])
def test_a_digest_is_that_of_the_whole_body(answer: str):
    """It passes only where the body is nothing else; an unfinished one is waited for."""
    bodies = {"chunks": b"ok", "until-close": b"xxok", "late": b"xxxxok", "no-text": b""}
    digest = hashlib.md5(bodies.get(answer, b"ok"), usedforsecurity=False).hexdigest()
    with answering(ANSWERS[answer]) as port:
        right = probe(port, expect_body=None, expect_digest=digest, expect=((200, 299),))
        wrong = probe(port, expect_body=None, expect_digest="0" * 32, expect=((200, 299),))

    if answer in bodies:
        assert right.result is CheckResult.L7OK
        assert (wrong.result, wrong.detail) == (
            CheckResult.L7RSP,
            f"{len(bodies[answer])} bytes of body with the digest {digest}",
        )
    else:
        expected = {"silence": CheckResult.L7TOUT, "bad-status": CheckResult.L7STS}[answer]
        assert (right.result, wrong.result) == (expected, expected)


def test_a_long_body_has_its_digest():
    """Of some pages only the end differs, far behind what is searched for a text."""
    body = b"x" * 40_000 + b"ok"
    digest = hashlib.md5(body, usedforsecurity=False).hexdigest()
    with answering(ANSWERS["far-away"]) as port:
        assert probe(port, expect_body=None, expect_digest=digest).result is CheckResult.L7OK


def test_a_digest_of_no_answer_is_no_answer():
    """The end before a status line is told with the bytes that came."""
    with answering((b"HTTP/1.1",)) as port:
        outcome = probe(port, expect_body=None, expect_digest=DIGEST)

    assert outcome.detail == "closed after 8 bytes, before a status line"


def _haproxy_cfg(ports: dict[str, int]) -> str:
    servers = "\n".join(f"  server {name} 127.0.0.1:{port} check" for name, port in ports.items())
    return f"""
global
  stats socket {{control}}
defaults
  mode tcp
  timeout connect 5s
  timeout client 5s
  timeout server 5s
  timeout check {TIMEOUT:g}s
frontend unused
  bind 127.0.0.1:{free_port()}
  default_backend checked
backend checked
  option httpchk GET /
  http-check expect string ok
  default-server inter 1s
{servers}
"""
