"""Checks of real servers: nginx with and without TLS, plain sockets that behave badly, both families."""

import contextlib
import os
import resource
import socket
import ssl
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from support.network.ports import accepts, free_port
from support.peers.nginx import nginx
from support.processes.processes import descriptors, running
from support.processes.waiting import wait_until
from support.run import tools
from support.values import certificates, snapshots
from support.values.certificates import Certificates

from appliance.core.checks.check_outcome import CheckOutcome
from appliance.model.check_results import CheckResult
from appliance.model.snapshot.pools import Check, SendProxy
from appliance.net.probing.probe import Probe, ProbeImpossible, request
from appliance.net.probing.tls_contexts import TlsContexts

pytestmark = [pytest.mark.sockets, pytest.mark.needs("nginx")]

Behaviour = Callable[[socket.socket], None]
RST: Final = struct.pack("ii", 1, 0)
ENOUGH: Final = 5.0
SOON: Final = 0.3

_PROXY_CONFIG = """
daemon off; master_process off; worker_processes 1; pid {root}/pid; error_log {root}/error.log info;
{user}
events {{ worker_connections 100; }}
http {{
  access_log off;
  client_body_temp_path {root}/a; proxy_temp_path {root}/b; fastcgi_temp_path {root}/c;
  uwsgi_temp_path {root}/d; scgi_temp_path {root}/e;
  server {{ listen 127.0.0.1:{port} proxy_protocol; location / {{ return 200 "ok"; }} }}
}}
"""


@pytest.fixture(scope="module")
def files() -> Iterator[Certificates]:
    """Certificate for localhost and 127.0.0.1, and its authority."""
    with tempfile.TemporaryDirectory() as directory:
        yield certificates.issue(Path(directory), "localhost", "127.0.0.1")


@pytest.fixture(scope="module")
def web() -> Iterator[int]:
    """Port of a plain nginx on both families."""
    with nginx() as server:
        yield server.port


@pytest.fixture(scope="module")
def secure(files: Certificates) -> Iterator[int]:
    """Port of an nginx with TLS on both families."""
    with nginx(certificates=files) as server:
        yield server.port


def probe(kind: str, port: int, *, at: str = "127.0.0.1", **changes: object) -> CheckOutcome:
    """Return the outcome of one check."""
    settings: dict[str, object] = {"path": "/readyz", "timeout": ENOUGH, **changes}
    return Probe(snapshots.check(kind, **settings), at, port, TlsContexts()).run()


@contextlib.contextmanager
def server(behave: Behaviour, *, family: int = socket.AF_INET) -> Iterator[int]:
    """Run a server that gives each connection to `behave`, and closes it when that returns."""
    stopped = threading.Event()
    with socket.socket(family) as listener:
        listener.bind(("127.0.0.1" if family == socket.AF_INET else "::1", 0))
        listener.listen()
        listener.settimeout(0.05)
        thread = threading.Thread(target=_serve, args=(listener, behave, stopped))
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            stopped.set()
            thread.join()


def _serve(listener: socket.socket, behave: Behaviour, stopped: threading.Event) -> None:
    while not stopped.is_set():
        with contextlib.suppress(TimeoutError):
            connection, _ = listener.accept()
            connection.settimeout(ENOUGH)
            with connection, contextlib.suppress(OSError):
                behave(connection)


def says(answer: bytes) -> Behaviour:
    """Return the behaviour of a server that reads the question and gives this answer."""

    def behave(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(answer)

    return behave


def until_closed(connection: socket.socket) -> None:
    """Read and answer nothing until the peer has gone."""
    while connection.recv(65536):
        pass


def drip(connection: socket.socket) -> None:
    """Send a status line that never ends, a byte at a time."""
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 ")
    while True:
        connection.sendall(b"x")
        time.sleep(0.02)


def reset(connection: socket.socket) -> None:
    """Send half a status line and reset."""
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 2")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST)


@pytest.mark.programs
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize(("kind", "expected"), [("tcp", CheckResult.L4OK), ("http", CheckResult.L7OK)])
def test_a_healthy_plain_server_passes(web: int, host: str, kind: str, expected: CheckResult):
    """Connecting is enough for tcp; http has its status and reason; both on IPv4 and IPv6."""
    outcome = probe(kind, web, at=host)
    assert (outcome.result, outcome.passed) == (expected, True)
    assert (outcome.status, outcome.detail) == ((200, "OK") if kind == "http" else (0, ""))
    assert 0 < outcome.duration < ENOUGH


@pytest.mark.programs
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize(("kind", "expected"), [("tls", CheckResult.L6OK), ("https", CheckResult.L7OK)])
def test_a_healthy_tls_server_passes_unverified(secure: int, host: str, kind: str, expected: CheckResult):
    """By default any certificate is accepted, as OpenShift's `verify none`."""
    assert probe(kind, secure, at=host).result is expected


def test_a_bad_answer_of_an_api_server_names_its_failed_checks():
    """They stand before the reason, where they came together with the status line."""

    def unready(connection: socket.socket) -> None:
        connection.recv(65536)
        body = b"[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed"
        connection.sendall(b"HTTP/1.0 500 Internal Server Error\r\n\r\n" + body)

    with server(unready) as port:
        outcome = probe("http", port)
    assert (outcome.result, outcome.status) == (CheckResult.L7STS, 500)
    assert outcome.detail == "etcd failed: Internal Server Error"


def test_a_probe_can_be_run_again(secure: int):
    """One probe serves a server for ever."""
    subject = Probe(
        snapshots.check("https", path="/readyz", timeout=ENOUGH), "127.0.0.1", secure, TlsContexts()
    )
    assert [subject.run().result for _ in range(3)] == [CheckResult.L7OK] * 3


def test_every_check_has_its_whole_time():
    """Time that one check took is not missing in the next one."""

    def slow(connection: socket.socket) -> None:
        connection.recv(65536)
        time.sleep(0.3)
        connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")

    with server(slow) as port:
        subject = Probe(snapshots.check("http", timeout=1.0), "127.0.0.1", port, TlsContexts())
        assert [subject.run().result for _ in range(5)] == [CheckResult.L7OK] * 5


@pytest.mark.parametrize(
    ("path", "expect", "result", "status"),
    [
        ("/missing", ((200, 399),), CheckResult.L7STS, 404),
        ("/missing", ((200, 399), (404, 404)), CheckResult.L7OK, 404),
        ("/readyz", ((201, 399),), CheckResult.L7STS, 200),
    ],
)
def test_the_status_decides(
    web: int, path: str, expect: tuple[tuple[int, int], ...], result: CheckResult, status: int
):
    """A status outside every expected range is L7STS, with the status to see."""
    outcome = probe("http", web, path=path, expect=expect)
    assert (outcome.result, outcome.status) == (result, status)


@pytest.mark.parametrize("kind", ["tcp", "tls", "http", "https"])
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_closed_port_is_refused(kind: str, host: str):
    """Nobody listens: L4CON with the kernel's word."""
    outcome = probe(kind, free_port(), at=host)
    assert (outcome.result, outcome.detail) == (CheckResult.L4CON, "connection refused")


@pytest.mark.parametrize("limits", [{"timeout": SOON}, {"timeout": ENOUGH, "timeout_connect": SOON}])
def test_a_connection_that_is_not_answered_runs_out_of_time(limits: dict[str, float]):
    """A full backlog swallows SYNs: L4TOUT, after the whole time or that for connecting."""
    with socket.socket() as listener, contextlib.ExitStack() as stack:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            filler = stack.enter_context(socket.socket())
            filler.settimeout(0.0)
            filler.connect_ex(listener.getsockname())
        outcome = probe("tcp", listener.getsockname()[1], **limits)
    assert (outcome.result, outcome.detail) == (CheckResult.L4TOUT, "no answer within 0.3 s")
    assert SOON <= outcome.duration < ENOUGH


@pytest.mark.parametrize(
    ("kind", "result"),
    [("tls", CheckResult.L6TOUT), ("https", CheckResult.L6TOUT), ("http", CheckResult.L7TOUT)],
)
def test_a_server_that_accepts_and_hangs_runs_out_of_time(kind: str, result: CheckResult):
    """The result says in which layer the time ran out."""
    with server(until_closed) as port:
        outcome = probe(kind, port, timeout=SOON)
    assert (outcome.result, outcome.detail) == (result, "no answer within 0.3 s")


def test_a_dripping_server_cannot_hold_a_check():
    """One timeout bounds the whole check, however many bytes arrive in time."""
    with server(drip) as port:
        assert probe("http", port, timeout=SOON).result is CheckResult.L7TOUT


def test_a_line_without_an_end_is_cut_off():
    """The bytes kept of an answer are bounded."""
    with server(says(b"HTTP/1.1 200 " + b"x" * 1_000_000)) as port:
        outcome = probe("http", port)
    assert (outcome.result, outcome.detail) == (CheckResult.L7RSP, "status line of more than 1024 bytes")


def test_huge_headers_do_not_matter():
    """The status line is all that is read, whatever follows and however long the server goes on."""

    def endless(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            connection.sendall(b"X-Header: " + b"x" * 65536 + b"\r\n")

    with server(endless) as port:
        assert probe("http", port).result is CheckResult.L7OK


@pytest.mark.parametrize("size", [1, 5, 12])
def test_an_answer_in_pieces_is_put_together(size: int):
    """A status line may arrive in any number of segments."""

    def pieces(connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.recv(65536)
        answer = b"HTTP/1.0 200 OK\r\n\r\nok"
        for at in range(0, len(answer), size):
            connection.sendall(answer[at : at + size])

    with server(pieces) as port:
        assert probe("http", port).result is CheckResult.L7OK


@pytest.mark.parametrize(
    ("behave", "detail"),
    [
        (says(b"SSH-2.0-OpenSSH_9.2\r\n"), "not a status line: b'SSH-2.0-OpenSSH_9.2\\r\\n'"),
        (says(b""), "closed after 0 bytes, before a status line"),
        (says(b"HTTP/1.1"), "closed after 8 bytes, before a status line"),
        (reset, "connection reset by peer"),
    ],
)
def test_an_answer_that_is_none_is_l7rsp(behave: Behaviour, detail: str):
    """Garbage, an early end and a reset are told apart in the detail."""
    with server(behave) as port:
        outcome = probe("http", port)
    assert outcome.result is CheckResult.L7RSP
    assert outcome.detail == detail


@pytest.mark.parametrize("kind", ["tls", "https"])
def test_a_server_without_tls_is_l6rsp(web: int, kind: str):
    """A plain answer to a ClientHello is a handshake failure, not a crash."""
    outcome = probe(kind, web)
    assert (outcome.result, outcome.detail) == (CheckResult.L6RSP, "wrong version number")


def test_a_handshake_that_ends_early_is_l6rsp():
    """A server that closes in mid-handshake has not shaken hands."""
    with server(says(b"")) as port:
        outcome = probe("https", port)
    assert outcome.result is CheckResult.L6RSP
    assert outcome.detail


def test_a_certificate_of_the_authority_passes(secure: int, files: Certificates):
    """With a CA file the chain is verified; with an SNI the name is as well."""
    verify = str(files.authority)
    assert probe("https", secure, verify=verify).result is CheckResult.L7OK
    assert probe("https", secure, verify=verify, sni="localhost").result is CheckResult.L7OK


def test_a_certificate_for_another_name_fails(secure: int, files: Certificates):
    """A verified name has to be in the certificate."""
    outcome = probe("tls", secure, verify=str(files.authority), sni="api.ocp4.example.com")
    assert outcome.result is CheckResult.L6RSP
    assert outcome.detail.startswith("certificate: Hostname mismatch")


def test_a_certificate_of_another_authority_fails(secure: int, tmp_path: Path):
    """A server that any other authority signed is not ours."""
    stranger = certificates.issue(tmp_path, "localhost")
    outcome = probe("https", secure, verify=str(stranger.authority))
    assert (outcome.result, outcome.detail[:12]) == (CheckResult.L6RSP, "certificate:")


@pytest.mark.programs
def test_an_expired_authority_fails(tmp_path: Path):
    """An authority whose time is over vouches for nobody."""
    expired = _expired(tmp_path)
    with nginx(certificates=expired) as old:
        verify = str(expired.authority)
        outcome = probe("https", old.port, verify=verify)
        assert (outcome.result, outcome.detail) == (CheckResult.L6RSP, "certificate: certificate has expired")
        assert probe("https", old.port).result is CheckResult.L7OK


@pytest.mark.parametrize("content", [None, b"", b"not a certificate"])
def test_a_ca_file_that_never_was_good_is_no_verdict(secure: int, tmp_path: Path, content: bytes | None):
    """With a missing, empty or broken CA file a check is impossible, and the reason names the file."""
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ProbeImpossible, match=str(path)):
        probe("https", secure, verify=str(path))


def test_a_ca_file_that_is_gone_for_a_moment_fails_no_server(
    secure: int, files: Certificates, tmp_path: Path
):
    """Between an old CA file and its new one checks go on with the old one."""
    path = tmp_path / "ca.pem"
    path.write_bytes(files.authority.read_bytes())
    check = snapshots.check("https", path="/readyz", timeout=ENOUGH, verify=str(path))
    subject = Probe(check, "127.0.0.1", secure, TlsContexts())
    assert subject.run().passed
    path.write_bytes(b"")
    assert subject.run().passed
    path.unlink()
    assert subject.run().passed


def test_a_renewed_ca_file_is_read_again(secure: int, files: Certificates, tmp_path: Path):
    """A CA file may be replaced without a reload."""
    path = tmp_path / "ca.pem"
    path.write_bytes(certificates.issue(tmp_path, "other").authority.read_bytes())
    check = snapshots.check("https", path="/readyz", timeout=ENOUGH, verify=str(path))
    subject = Probe(check, "127.0.0.1", secure, TlsContexts())
    assert subject.run().result is CheckResult.L6RSP
    path.write_bytes(files.authority.read_bytes())
    os.utime(path, (1, 1))
    assert subject.run().result is CheckResult.L7OK


def test_the_server_sees_the_sni(files: Certificates):
    """`sni` travels in the ClientHello, and none travels without it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.chain, files.key)
    seen: list[str | None] = []
    context.sni_callback = lambda _, name, __: seen.append(name)

    def behave(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secured:
            secured.recv(1024)

    with server(behave) as port:
        assert probe("tls", port, sni="api.example.com").result is CheckResult.L6OK
        assert probe("tls", port).result is CheckResult.L6OK
    assert seen == ["api.example.com", None]


def test_a_tls_check_ends_like_a_client_that_is_done(files: Certificates):
    """The server completes its handshake and reads a proper end: nothing to log for it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.chain, files.key)
    ends: list[bytes | OSError] = []

    def behave(connection: socket.socket) -> None:
        try:
            with context.wrap_socket(connection, server_side=True, suppress_ragged_eofs=False) as secured:
                ends.append(secured.recv(1024))
        except OSError as error:
            ends.append(error)

    with server(behave) as port:
        assert probe("tls", port).result is CheckResult.L6OK
        wait_until(lambda: ends, what="the server has seen the end")
    assert ends == [b""]


@pytest.mark.programs
@pytest.mark.parametrize("version", [SendProxy.V1, SendProxy.V2])
def test_a_listener_that_wants_a_proxy_header_gets_one(tmp_path: Path, version: SendProxy):
    """A `proxy_protocol` listener of nginx answers a check with the header only."""
    with _proxy_nginx(tmp_path) as port:
        assert probe("http", port, send_proxy=version).result is CheckResult.L7OK
        assert probe("http", port).result is CheckResult.L7RSP


def test_the_proxy_header_comes_before_tls(files: Certificates):
    """The header is the first thing on the wire, in clear, then the handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.chain, files.key)
    seen: list[bytes] = []

    def behave(connection: socket.socket) -> None:
        seen.append(connection.recv(len(b"PROXY UNKNOWN\r\n")))
        with context.wrap_socket(connection, server_side=True) as secured:
            secured.recv(1024)
            secured.sendall(b"HTTP/1.0 200 OK\r\n\r\n")

    with server(behave) as port:
        assert probe("https", port, send_proxy=SendProxy.V1).result is CheckResult.L7OK
    assert seen == [b"PROXY UNKNOWN\r\n"]


def test_a_tcp_check_delivers_its_proxy_header():
    """The header arrives, and the end after it is a FIN."""
    seen: list[bytes] = []

    def behave(connection: socket.socket) -> None:
        while data := connection.recv(1024):
            seen.append(data)
        seen.append(b"")

    with server(behave) as port:
        assert probe("tcp", port, send_proxy=SendProxy.V1).result is CheckResult.L4OK
        wait_until(lambda: b"" in seen, what="the server has seen the end")
    assert seen == [b"PROXY UNKNOWN\r\n", b""]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"path": "/readyz"}, b"GET /readyz HTTP/1.0\r\n\r\n"),
        (
            {"method": "HEAD", "host": "api.example.com"},
            b"HEAD /readyz HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n\r\n",
        ),
    ],
)
def test_the_server_sees_the_request(changes: dict[str, object], expected: bytes):
    """Without a host the question is OpenShift's own, with one it is HTTP/1.1 and closes."""
    seen: list[bytes] = []

    def behave(connection: socket.socket) -> None:
        seen.append(connection.recv(65536))
        connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    with server(behave) as port:
        assert probe("http", port, **changes).status == 204
    assert seen == [expected]
    assert request(snapshots.check("http", **{"path": "/readyz", **changes}), ("127.0.0.1", port)) == expected


@pytest.mark.parametrize("kind", ["tcp", "http", "https"])
def test_checks_leave_no_ports_behind(web: int, secure: int, kind: str):
    """Connections end by RST once the answer is known: no TIME_WAIT on our side."""
    port = secure if kind == "https" else web
    for _ in range(5):
        assert probe(kind, port, at="127.0.0.77").passed
    assert f"4D00007F:{port:04X}" not in _time_wait()


def test_a_machine_without_descriptors_knows_nothing_of_the_server(web: int):
    """Our own shortage is an error of ours, never a verdict."""
    subject = Probe(snapshots.check("tcp", timeout=ENOUGH), "127.0.0.1", web, TlsContexts())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        with pytest.raises(ProbeImpossible, match="no socket"):
            subject.run()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert subject.run().passed


def test_checks_leak_no_descriptors(web: int):
    """Whatever the outcome, a check gives its descriptor back."""
    contexts = TlsContexts()
    with server(until_closed) as silent:
        subjects = [
            Probe(check, "127.0.0.1", port, contexts) for check, port in _checks(web, silent, free_port())
        ]
        for subject in subjects:
            subject.run()
        before = descriptors(os.getpid())
        for subject in subjects:
            subject.run()
        # The server's ends are in this process too, and go a moment later.
        wait_until(lambda: descriptors(os.getpid()) <= before, what="all descriptors are given back")


def _checks(good: int, silent: int, closed: int) -> Iterator[tuple[Check, int]]:
    for kind in ("tcp", "tls", "http", "https"):
        for port in (good, silent, closed):
            yield snapshots.check(kind, path="/readyz", timeout=0.1), port


def _time_wait() -> list[str]:
    """Return the remote ends of our TIME_WAIT sockets, as hexadecimal address:port."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [row[2] for row in rows if row[3] == "06"]


@contextlib.contextmanager
def _proxy_nginx(root: Path) -> Iterator[int]:
    port = free_port()
    config = root / "nginx.conf"
    user = "user root;" if tools.is_root() else ""
    config.write_text(_PROXY_CONFIG.format(root=root, port=port, user=user))
    command = [
        tools.path("nginx") or "nginx",
        "-p",
        str(root),
        "-c",
        str(config),
        "-e",
        str(root / "error.log"),
    ]
    with running(command, log=root / "output.log"):
        wait_until(lambda: accepts(port), what="nginx accepts")
        yield port


def _expired(directory: Path) -> Certificates:
    """Return a certificate whose time is over, as its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    certificate = (
        x509.CertificateBuilder(issuer_name=name, subject_name=name, public_key=key.public_key())
        .serial_number(1)
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2021, 1, 1, tzinfo=UTC))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, SHA256())
    )
    path = directory / "cert.pem"
    path.write_bytes(certificate.public_bytes(Encoding.PEM))
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (directory / "key.pem").write_bytes(secret)
    return Certificates(authority=path, chain=path, key=directory / "key.pem")
