"""Clients led to pools by the server name of their ClientHello, which stays as it is."""

import contextlib
import socket
import time
from collections.abc import Iterator

import pytest
from support.values.client_hellos import message, openssl_hello, records, server_name
from support.values.snapshots import bind, frontend, group, pool, server, snapshot
from support.worker.lone_worker import lone_worker
from support.worker.trace import PATIENCE, Origin, Relay, Setting, reset

from appliance.core.balancing.frontend_state import FrontendState
from appliance.model.end_reasons import EndReason
from appliance.model.snapshot.frontends import SniRoute
from appliance.model.snapshot.pools import SendProxy
from appliance.wire.tls.client_hello import LIMIT
from appliance.worker.relay.acceptors import Acceptors
from appliance.worker.relay.all_sessions import Traffic

pytestmark = [pytest.mark.programs, pytest.mark.data_path]

ROUTES = (
    SniRoute(names=("api.example.com",), pool="api"),
    SniRoute(names=("*.example.com",), pool="apps"),
    SniRoute(regex="^db[0-9]+$", pool="api"),
)
LONG = 3600.0


class Routed:
    """A worker of one frontend with `sni`, and its three pools with a server each."""

    def __init__(self, running: Relay, origins: dict[str, Origin]) -> None:
        self.running = running
        self.origins = origins

    def client(self, *pieces: bytes) -> socket.socket:
        """Return a client that has sent these pieces, each in a segment of its own."""
        client = self.running.connect()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for each in pieces:
            client.sendall(each)
        return client

    def arrives(self, pool: str, data: bytes) -> socket.socket:
        """Wait until a pool's server has got exactly these bytes; return its connection."""
        connection = self.origins[pool].accept()
        got = b""
        while len(got) < len(data):
            got += connection.recv(len(data) - len(got))
        assert got == data
        return connection


@contextlib.contextmanager
def routed(
    *, timeout_hello: float = LONG, back: dict[str, object] | None = None, **front: object
) -> Iterator[Routed]:
    """Run it; it must have met no bug at the end."""
    origins = {name: Origin() for name in ("pool", "api", "apps")}
    setting = Setting()
    changes = {"sni": ROUTES, "timeout_hello": timeout_hello, **front}
    given = snapshot(
        groups=[group("api", frontends=[frontend("front", binds=[bind(setting.port)], **changes)])],
        pools=[
            pool(name, servers=[server(f"s-{name}", port=each.port)], **(back or {}))
            for name, each in origins.items()
        ],
    )
    with lone_worker(given) as worker:
        running = Relay(worker, setting)
        yield Routed(running, origins)
        assert "internal-error" not in running.log(), running.log()


def test_a_frontend_without_server_names_costs_nothing_more():
    """What becomes of a connection is chosen with its listener: without `sni` it is relayed directly."""
    traffic = Traffic(descriptors=100, fault=lambda _: None, accept_failed=lambda _: None)
    made = Acceptors(traffic, frontends={}, backends={})
    plain, named = (FrontendState(frontend("front", sni=each), workers=1, index=0) for each in ((), ROUTES))
    assert made._opening(plain) == made._relay
    assert made._opening(named) == made._inspect
    traffic.close()


@pytest.mark.promise("docs/concepts.md", "a server name leads to its pool, however the hello comes in pieces")
def test_names_lead_to_pools():
    """Exact names, wildcards and expressions, in their order; the others go to `pool`."""
    with routed() as at:
        for name, expected in (
            ("api.example.com", "api"),
            ("API.EXAMPLE.COM", "api"),
            ("a.b.example.com", "apps"),
            ("db7", "api"),
            ("example.com", "pool"),
            ("db7.example.org", "pool"),
            (None, "pool"),
        ):
            hello = openssl_hello(name)
            with at.client(hello) as client, at.arrives(expected, hello) as origin:
                origin.sendall(b"answer")
                assert client.recv(6) == b"answer"
                client.sendall(b"more")
                assert origin.recv(4) == b"more"


@pytest.mark.parametrize("step", [1, 7, 100])
def test_a_hello_in_pieces(step: int):
    """Many segments and many records: it is the same hello, and the server gets it as it came."""
    hello = records(message(server_name(b"api.example.com")), [3, 1, 1, 40])
    with routed() as at:
        pieces = [hello[place : place + step] for place in range(0, len(hello), step)]
        with at.client(*pieces[:-1]) as client:
            at.running.until(
                lambda: [each["phase"] for each in at.running.sessions()] == ["inspecting"], "waits"
            )
            client.sendall(pieces[-1] + b"what comes next")
            at.arrives("api", hello + b"what comes next").close()


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"\x16\x02\x00\x00\x05hello",
        b"\x16\x03\x01\x40\x00" + bytes(4) + b"\x01" * LIMIT,
        records(b"\1\0\x3f\xf0" + bytes(0x3FF0), [1000] * 16),
        records(message(server_name(b"api.example.com", kind=9))),
    ],
)
def test_what_is_no_hello_goes_to_the_pool_at_once(data: bytes):
    """Plain text, garbage, a hello without an end within the limit: nobody waits for it."""
    with routed() as at, at.client(data):
        at.arrives("pool", data).close()


def test_a_client_that_says_nothing_is_held_no_longer_than_the_time():
    """It goes to the frontend's pool, whose server may speak first; a hello that is not complete does too."""
    part = openssl_hello("api.example.com")[:-1]
    with routed(timeout_hello=0.3) as at:
        for said in (b"", part):
            with at.client(said) as client, at.arrives("pool", said) as origin:
                origin.sendall(b"220 ready\r\n")
                assert client.recv(100) == b"220 ready\r\n"


def test_a_client_that_ends_its_part_is_not_waited_for():
    """A FIN behind a part of a hello: no more comes, and the server gets the part and the FIN."""
    part = openssl_hello("api.example.com")[:20]
    with routed() as at, at.client(part) as client:
        client.shutdown(socket.SHUT_WR)
        with at.arrives("pool", part) as origin:
            assert origin.recv(1) == b""


def test_a_client_that_resets_meets_no_server():
    """It has left: it is counted as that, and has no place any more."""
    with routed() as at:
        client = at.client(b"\x16\x03")
        at.running.until(at.running.sessions, "it waits")
        reset(client)
        at.running.ended(EndReason.CLIENT_ABORT)
        board = at.running.worker.board().frontends[0]
        assert (board.current, board.failed, board.total) == (0, 1, 1)
        assert all(each.is_quiet(0.1) for each in at.origins.values())


def test_the_proxy_header_comes_before_the_hello():
    """The server reads who the client is, and then the hello."""
    hello = openssl_hello("api.example.com")
    with routed(back={"send_proxy": SendProxy.V1}) as at, at.client(hello) as client:
        host, port = client.getsockname()
        header = f"PROXY TCP4 {host} 127.0.0.1 {port} {at.running.setting.port}\r\n".encode()
        at.arrives("api", header + hello).close()


def test_waiting_clients_count():
    """Those that have said nothing yet have places of `max_connections`, and give them back."""
    hello = openssl_hello("api.example.com")
    with routed(max_connections=1) as at:
        waiting = at.client()
        at.running.until(at.running.sessions, "it waits")
        with at.client(hello):
            assert at.origins["api"].is_quiet(0.3)
            waiting.close()
            at.arrives("pool", b"").close()
            at.arrives("api", hello).close()


def test_waiting_clients_are_listed_and_killed():
    """`sessions` shows a client whose hello has not come, and `kill` ends it by where it comes from."""
    with routed() as at, at.client() as client:
        at.running.until(at.running.sessions, "it waits")
        (listed,) = at.running.sessions()
        assert (listed["phase"], listed["server"], listed["frontend"]) == ("inspecting", None, "front")
        assert at.running.worker.ask("kill", source="127.0.0.0/8")["killed"] == 1
        with pytest.raises(ConnectionResetError):
            client.recv(1)


def test_a_drain_waits_for_hellos():
    """A client whose hello comes after the drain has begun is served, and then the worker ends."""
    hello = openssl_hello("api.example.com")
    with routed() as at, at.client(hello[:5]) as client:
        at.running.until(at.running.sessions, "it waits")
        at.running.worker.ask("drain", deadline=time.time() + PATIENCE)
        client.sendall(hello[5:])
        with at.arrives("api", hello) as origin:
            origin.sendall(b"served")
            assert client.recv(6) == b"served"
