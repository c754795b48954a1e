"""HTTP and TCP tracks ask as curl does, on both loopback addresses for localhost."""

import contextlib
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.network.ports import free_port
from support.peers.nginx import nginx
from support.values import certificates
from support.values.certificates import Certificates
from support.vrrp.tracks import track

from appliance.model.snapshot.virtual_router import TrackKind
from appliance.net.probing.tls_contexts import TlsContexts
from appliance.net.tracking.endpoint import EndpointTrack, http_track, tcp_track
from appliance.net.tracking.track_check import LookResult, TrackUnknown

pytestmark = pytest.mark.sockets

ENOUGH = 5.0
FINE = ((200, 399),)


@pytest.fixture(scope="module")
def files() -> Iterator[Certificates]:
    """Certificate for localhost and 127.0.0.1, and its authority."""
    with tempfile.TemporaryDirectory() as directory:
        yield certificates.issue(Path(directory), "localhost", "127.0.0.1")


@pytest.fixture(scope="module")
def secure(files: Certificates) -> Iterator[int]:
    """Port of an nginx with TLS on both families."""
    with nginx(certificates=files) as server:
        yield server.port


def http(url: str, *, timeout: float = ENOUGH, verify: str | None = None) -> EndpointTrack:
    """Return the check of a URL."""
    subject = track(kind=TrackKind.HTTP, target=url, timeout=timeout, verify=verify, expect=FINE)
    return http_track(subject, TlsContexts())


def tcp(target: str, *, timeout: float = ENOUGH) -> EndpointTrack:
    """Return the check of a port."""
    return tcp_track(track(kind=TrackKind.TCP, target=target, timeout=timeout), TlsContexts())


@contextlib.contextmanager
def answering(status: str, *, host: str = "127.0.0.1", port: int = 0) -> Iterator[tuple[int, list[bytes]]]:
    """Run a server that gives every question one answer; with its port and the questions it got."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    questions: list[bytes] = []
    with socket.create_server((host, port), family=family) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        questions.append(connection.recv(65536))
                        connection.sendall(f"HTTP/1.1 {status}\r\n\r\n".encode())

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1], questions
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_a_good_answer_is_up():
    """The status is told."""
    with answering("200 Fine") as (port, _):
        assert http(f"http://127.0.0.1:{port}/readyz").look() == LookResult(up=True, detail="HTTP 200 Fine")


def test_another_status_is_down():
    """What is not expected is down, in the server's own words."""
    with answering("503 Not Yet") as (port, _):
        assert http(f"http://127.0.0.1:{port}").look() == LookResult(up=False, detail="HTTP 503 Not Yet")


def test_the_question_is_curls():
    """Path with query, and the URL's host with its port."""
    with answering("200 OK") as (port, questions):
        assert http(f"http://localhost:{port}/healthz/ready?full=1").look().up
    assert questions == [
        f"GET /healthz/ready?full=1 HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n".encode()
    ]


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("http://[::1]:8080/", b"Host: [::1]:8080"),
        ("http://[::1]", b"Host: [::1]"),
        ("https://web.example:443/a", b"Host: web.example"),
        ("https://web.example:80/a", b"Host: web.example:80"),
    ],
)
def test_the_scheme_s_own_port_is_left_out(url: str, line: bytes):
    """Host is written as RFC 9110 wants it."""
    subject = http(url)
    assert subject._check.host is not None
    assert f"Host: {subject._check.host}".encode() == line
    subject.close()


@pytest.mark.parametrize("target", ["ftp://host/", "http:///path", "localhost:80", "http://host:port/"])
def test_what_is_no_url_is_refused(target: str):
    """A target that cannot be asked is no check."""
    with pytest.raises(ValueError, match=r".+"):
        http(target)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_localhost_is_whichever_address_answers(host: str):
    """A server that listens on one family is found, and the next look begins there."""
    with answering("200 OK", host=host) as (port, _):
        subject = http(f"http://localhost:{port}/")
        assert [subject.look().up for _ in range(2)] == [True, True]
        assert subject._addresses[0] == host
    assert subject.look() == LookResult(up=False, detail="connection refused")


def test_a_bad_answer_on_one_loopback_address_is_the_answer():
    """Somebody listens there: the other address is not asked for another opinion."""
    with answering("500 Broken", host="::1") as (port, _), answering("200 OK", port=port):
        assert http(f"http://localhost:{port}/").look() == LookResult(up=False, detail="HTTP 500 Broken")


def test_an_address_that_does_not_answer_gives_way_at_the_next_look():
    """A look takes one timeout, not one for each address."""
    port = free_port()
    with socket.socket(socket.AF_INET6) as full, answering("200 OK", port=port):
        full.bind(("::1", port))
        full.listen(0)
        with contextlib.ExitStack() as stack:
            for _ in range(3):  # nobody accepts, and the queue is full
                waiting = stack.enter_context(socket.socket(socket.AF_INET6))
                waiting.setblocking(False)  # noqa: FBT003  # the standard library's signature
                waiting.connect_ex(("::1", port))
            subject = http(f"http://localhost:{port}/", timeout=0.3)
            assert subject.look() == LookResult(up=False, detail="no answer within 0.3 s")
            assert subject.look().up


def test_a_port_that_accepts_is_up():
    """Nothing is asked of it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        for host in ("127.0.0.1", "localhost"):
            assert tcp(f"{host}:{port}").look() == LookResult(up=True, detail="it accepts")
    assert tcp(f"127.0.0.1:{port}").look() == LookResult(up=False, detail="connection refused")


def test_a_server_that_hangs_is_down_in_time():
    """The timeout bounds the whole look."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        assert http(url, timeout=0.1).look() == LookResult(up=False, detail="no answer within 0.1 s")


def test_a_name_that_does_not_resolve_is_down():
    """The name service's own words are told."""
    subject = tcp("no-such-host.invalid:80")
    seen = subject.look()
    assert not seen.up
    assert seen.detail.startswith("name no-such-host.invalid not resolved: ")
    subject.close()


def test_a_name_is_resolved():
    """Its address is asked."""
    with answering("200 OK") as (port, _):
        subject = http(f"http://localhost.localdomain:{port}/")
        subject._resolver.close()
        subject._resolver._ask = lambda _: ["127.0.0.1"]
        subject._resolver.want(["localhost.localdomain"])
        assert subject.look().up
        subject.close()


@pytest.mark.programs
@pytest.mark.needs("nginx")
def test_any_certificate_will_do_where_none_is_verified(secure: int):
    """As with curl -k."""
    assert http(f"https://localhost:{secure}/readyz").look() == LookResult(up=True, detail="HTTP 200 OK")


@pytest.mark.programs
@pytest.mark.needs("nginx")
def test_a_certificate_is_verified_with_its_name(secure: int, files: Certificates):
    """The authority has to be right, and the name or address of the URL."""
    authority = str(files.authority)
    assert http(f"https://localhost:{secure}/readyz", verify=authority).look().up
    assert http(f"https://127.0.0.1:{secure}/readyz", verify=authority).look().up
    wrong = http(f"https://[::1]:{secure}/readyz", verify=authority).look()
    assert (wrong.up, wrong.detail[:12]) == (False, "certificate:")


@pytest.mark.programs
@pytest.mark.needs("nginx")
def test_a_missing_authority_is_nothing_that_was_seen(secure: int, tmp_path: Path):
    """Nothing is known of the server."""
    with pytest.raises(TrackUnknown, match="CA file"):
        http(f"https://localhost:{secure}/readyz", verify=str(tmp_path / "none")).look()
