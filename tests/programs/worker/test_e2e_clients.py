"""Real clients through the whole appliance to real servers: TLS, HTTP/2, large bodies, upgrades, half-close.

`E2E_FULL=1` holds the upgraded connection open for minutes.
"""

import hashlib
import os
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.network.ports import free_port
from support.peers.backend import Backend
from support.peers.nginx import Nginx, nginx
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance
from support.values import body
from support.values.certificates import Certificates, issue

pytestmark = [
    pytest.mark.programs,
    pytest.mark.needs("nginx", "curl", "openssl"),
    pytest.mark.slow("many connections, or real time-outs"),
]

_HELD = 180.0 if os.environ.get("E2E_FULL") == "1" else 3.0
_LARGE = 1 << 30
_UPLOAD = 64 << 20
_HOSTS = ("127.0.0.1", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """An appliance with a TLS frontend to nginx and a plain one to a scripted backend."""

    appliance: Appliance
    certificates: Certificates
    backend: Backend
    server: Nginx
    tls: int
    plain: int


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Run the site once for all tests of this module."""
    certificates = issue(tmp_path_factory.mktemp("tls"), "localhost", *_HOSTS)
    tls, plain = free_port(), free_port()
    with ExitStack() as stack:
        backend = stack.enter_context(Backend("scripted"))
        server = stack.enter_context(nginx("router", certificates=certificates, upgrades_to=backend.port))
        appliance = stack.enter_context(
            Appliance(_config(tls, plain, server.port, backend.port, certificates))
        )
        yield Site(
            appliance=appliance,
            certificates=certificates,
            backend=backend,
            server=server,
            tls=tls,
            plain=plain,
        )


@pytest.mark.parametrize("host", _HOSTS)
@pytest.mark.parametrize("version", ["1.1", "2"])
def test_curl_speaks_tls_through_to_the_server(site: Site, host: str, version: str):
    """The certificate is verified end to end, and the HTTP version is the two ends' affair."""
    printed = _curl(site, host, "/name", f"--http{version}", "-w", "%{http_version}")
    assert printed.split() == ["router", version]


@pytest.mark.parametrize("host", _HOSTS)
def test_openssl_verifies_the_servers_chain(site: Site, host: str):
    """`openssl s_client` completes its handshake with the server and gets an answer."""
    address = f"[{host}]" if ":" in host else host
    done = subprocess.run(
        [
            *(
                "openssl",
                "s_client",
                "-connect",
                f"{address}:{site.tls}",
                "-CAfile",
                site.certificates.authority,
            ),
            *("-verify_return_error", "-ign_eof", "-quiet"),
        ],
        input=b"GET /name HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        capture_output=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(b"router\n")


@pytest.mark.needs("nghttp")
def test_many_http2_streams_share_one_connection(site: Site):
    """A hundred streams on one connection are all answered."""
    done = subprocess.run(
        ["h2load", "-n1000", "-c1", "-m100", f"https://127.0.0.1:{site.tls}/name"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "1000 succeeded, 0 failed, 0 errored" in done.stdout


def test_a_large_body_arrives_whole(site: Site):
    """A body of 1 GiB has the right length and checksum."""
    digest, length = hashlib.sha256(), 0
    with _connect(site.plain) as connection:
        connection.sendall(b"give %d\n" % _LARGE)
        while chunk := connection.recv(1 << 20):
            digest.update(chunk)
            length += len(chunk)
    assert length == _LARGE
    assert digest.hexdigest() == body.checksum(_LARGE)


def test_curl_downloads_and_uploads_over_tls(site: Site, tmp_path: Path):
    """A file goes to nginx and comes back unchanged, over HTTP/2 and TLS."""
    sent, received = tmp_path / "sent", tmp_path / "received"
    body.write(sent, _UPLOAD)
    assert _curl(site, "127.0.0.1", "/stored", "-T", str(sent), "-w", "%{http_code}") == "201"
    _curl(site, "::1", "/stored", "-o", str(received))
    assert received.stat().st_size == _UPLOAD
    assert _checksum(site.server.www / "stored") == _checksum(received) == body.checksum(_UPLOAD)


def test_an_upgraded_connection_carries_both_ways_for_as_long_as_it_is_held(site: Site):
    """After `101 Switching Protocols` bytes go either way at any time, through TLS and nginx."""
    context = ssl.create_default_context(cafile=str(site.certificates.authority))
    with _connect(site.tls) as plain, context.wrap_socket(plain, server_hostname="localhost") as connection:
        connection.sendall(
            b"GET /upgrade HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
        )
        assert b" 101 " in _until(connection, b"\r\n\r\n")
        until, frames = time.monotonic() + _HELD, 0
        while time.monotonic() < until:
            frame = b"frame %d\n" % frames
            connection.sendall(frame)
            assert _until(connection, b"\n") == frame
            frames += 1
            time.sleep(0.01 if frames % 10 else 0.2)  # bursts and silences are what is held open
        assert frames > 0


def test_a_clients_half_close_is_passed_on(site: Site):
    """A server that reads to the end can still answer a client that has finished sending."""
    with _connect(site.plain) as connection:
        connection.sendall(b"take\n")
        for chunk in body.chunks(_UPLOAD):
            connection.sendall(chunk)
        connection.shutdown(socket.SHUT_WR)
        assert _until(connection, b"\n").decode().split() == [str(_UPLOAD), body.checksum(_UPLOAD)]


def test_a_servers_half_close_is_passed_on(site: Site):
    """A client that has seen the server's end can still send, within the fin timeout."""
    before = site.backend.counts().get("parted", 0)
    with _connect(site.plain) as connection:
        connection.sendall(b"part\n")
        assert _until(connection, b"\n") == b"part\n"
        assert connection.recv(1) == b""
        for chunk in body.chunks(_UPLOAD):
            connection.sendall(chunk)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""
    assert _wait_for_count(site, "parted", before + _UPLOAD) == before + _UPLOAD


def test_a_servers_reset_reaches_its_client_only(site: Site):
    """A reset on one session ends that one; another one goes on."""
    with _connect(site.plain) as other, _connect(site.plain) as connection:
        other.sendall(b"line 1\n")
        assert _until(other, b"\n") == b"scripted 1\n"
        connection.sendall(b"reset\n")
        with pytest.raises(ConnectionResetError):
            assert connection.recv(1) == b"x", "an orderly end instead of a reset"
        other.sendall(b"line 2\n")
        assert _until(other, b"\n") == b"scripted 2\n"


def _config(tls: int, plain: int, server: int, backend: int, certificates: Certificates) -> dict[str, object]:
    check = {"type": "https", "path": "/readyz", "interval": "1s", "verify": str(certificates.authority)}
    routers = [{"address": f"127.0.0.1:{server}"}, {"address": f"[::1]:{server}"}]
    return {
        "ingress": {
            "workers": 1,
            "frontends": {
                "https": {"bind": [f"[::]:{tls}"], "pool": "routers"},
                "plain": {"bind": [f"[::]:{plain}"], "pool": "scripted"},
            },
        },
        "pools": {
            "routers": {"check": check, "servers": {f"router-{i}": each for i, each in enumerate(routers)}},
            "scripted": {
                "check": {"type": "tcp", "interval": "1s"},
                "servers": {"scripted": {"address": f"127.0.0.1:{backend}"}},
            },
        },
        "defaults": {"drain": "5s", "timeouts": {"client_fin": "30s", "server_fin": "30s"}},
    }


def _curl(site: Site, host: str, path: str, *options: str) -> str:
    address = f"[{host}]" if ":" in host else host
    done = subprocess.run(
        [
            *("curl", "-sS", "--fail", "--max-time", "60", "--cacert", site.certificates.authority),
            *(*options, f"https://{address}:{site.tls}{path}"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30.0)


def _until(connection: socket.socket, end: bytes) -> bytes:
    received = b""
    while not received.endswith(end):
        chunk = connection.recv(1 << 16)
        assert chunk, f"ended after {received!r}"
        received += chunk
    return received


def _wait_for_count(site: Site, name: str, wanted: int) -> int:
    return wait_until(
        lambda: count if (count := site.backend.counts().get(name, 0)) >= wanted else 0,
        what=f"the backend counts {wanted} {name}",
    )


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
