"""Clients led to pools by their networks, of both versions of IP, before any byte of theirs has come."""

import contextlib
import socket
from collections.abc import Iterator

import pytest
from support.processes.waiting import wait_until
from support.values.client_hellos import openssl_hello
from support.values.snapshots import bind, frontend, group, pool, server, snapshot
from support.worker.lone_worker import lone_worker
from support.worker.trace import PATIENCE, Origin, Relay, Setting

from appliance.core.balancing.frontend_state import FrontendState
from appliance.model.snapshot.frontends import ClientRoute, SniRoute
from appliance.worker.relay.acceptors import Acceptors
from appliance.worker.relay.all_sessions import Traffic

pytestmark = [pytest.mark.programs, pytest.mark.data_path]

CLIENTS = (
    ClientRoute(networks=("127.0.1.0/24", "2001:db8::/32"), pool="near"),
    ClientRoute(networks=("127.0.1.1/32", "127.0.0.0/16", "::1/128"), pool="far"),
)
SNI = (SniRoute(names=("api.example.com",), pool="near"),)


class Routed:
    """A worker of one frontend with `clients` on an address of both versions, and its three pools."""

    def __init__(self, running: Relay, origins: dict[str, Origin]) -> None:
        self.running = running
        self.origins = origins

    def leads(self, source: str, to: str, said: bytes = b"") -> None:
        """Check that a client from an address gets a pool's server, which may speak first."""
        host = "::1" if ":" in source else "127.0.0.1"
        address = (host, self.running.setting.port)
        with socket.create_connection(address, PATIENCE, source_address=(source, 0)) as client:
            client.sendall(said)
            with self.origins[to].accept() as origin:
                origin.sendall(b"first")
                assert client.recv(5) == b"first"
                assert not said or origin.recv(len(said)) == said

    def counts(self, **wanted: int) -> None:
        """Wait until the worker's board has these counters of the frontend."""

        def counters() -> dict[str, int]:
            board = self.running.worker.board().frontends[0]
            return {name: getattr(board, name) for name in wanted}

        wait_until(lambda: counters() == wanted, what=f"the counters {wanted}")


@contextlib.contextmanager
def routed(**front: object) -> Iterator[Routed]:
    """Run it."""
    origins = {name: Origin() for name in ("pool", "near", "far")}
    setting = Setting(host="::")
    made = frontend("front", binds=[bind(setting.port, host="::")], **{"clients": CLIENTS, **front})
    given = snapshot(
        groups=[group("api", frontends=[made])],
        pools=[pool(name, servers=[server(f"s-{name}", port=each.port)]) for name, each in origins.items()],
    )
    with lone_worker(given) as worker:
        yield Routed(Relay(worker, setting), origins)


def test_a_frontend_without_networks_costs_nothing_more():
    """What becomes of a connection is chosen with its listener: without `clients` no route is looked up."""
    traffic = Traffic(descriptors=100, fault=lambda _: None, accept_failed=lambda _: None)
    made = Acceptors(traffic, frontends={}, backends={})
    for changes, direct in (({}, made._relay), ({"sni": SNI}, made._inspect)):
        plain, led = (
            FrontendState(frontend("front", clients=each, **changes), workers=1, index=0)
            for each in ((), CLIENTS)
        )
        assert made._opening(plain) == direct
        assert getattr(made._opening(led), "args", ()) == (direct,)
    traffic.close()


@pytest.mark.promise("docs/concepts.md", "a client's network leads to its pool, IPv4 and IPv6")
def test_networks_lead_to_pools():
    """The first entry that matches, and IPv4 clients of `[::]` by their IPv4 address; others go to `pool`."""
    with routed() as at:
        for source, to in (
            ("127.0.1.1", "near"),
            ("127.0.1.255", "near"),
            ("127.0.2.1", "far"),
            ("::1", "far"),
            ("127.1.0.1", "pool"),
        ):
            at.leads(source, to)
            at.leads(source, to, b"said")
        at.counts(total=10, denied=0, failed=0)


def test_names_are_asked_of_the_others():
    """With `sni` too, a client of a listed network is not waited for, whichever name it would ask for."""
    hello = openssl_hello("api.example.com")
    with routed(sni=SNI, timeout_hello=3600.0) as at:
        at.leads("127.0.2.1", "far")
        at.leads("127.0.2.1", "far", hello)
        at.leads("127.1.0.1", "near", hello)
        at.leads("127.1.0.1", "pool", openssl_hello("other.example.com"))


def test_who_may_not_connect_is_led_nowhere():
    """The lists of who may connect come first."""
    with routed(deny=("::1/128",)) as at:
        at.leads("127.0.1.1", "near")
        assert at.running.refuses()
        at.counts(total=1, denied=1, failed=0)
