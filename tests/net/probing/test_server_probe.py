"""Checks follow a server's name, and have it asked for again when they fail."""

import socket
import time
from collections.abc import Iterator
from dataclasses import replace

import gevent
import pytest
from gevent.event import Event
from support.network.ports import free_port
from support.values import snapshots

from appliance.model.check_results import CheckResult
from appliance.model.snapshot.pools import Check, Server
from appliance.net.probing.resolver import Resolver
from appliance.net.probing.server_probe import ServerProbe
from appliance.net.probing.tls_contexts import TlsContexts

pytestmark = pytest.mark.sockets

CHECK = snapshots.check("tcp", timeout=5.0)
PATIENCE = 10.0


@pytest.fixture
def port() -> Iterator[int]:
    """Port that accepts on 127.0.0.1 only."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def probe(server: Server, check: Check, resolver: Resolver) -> ServerProbe:
    """Return the check of a server."""
    return ServerProbe(server, check, contexts=TlsContexts(), resolver=resolver)


def test_a_check_goes_where_the_name_leads(port: int):
    """A name that moves to a dead address fails the next check, which makes the resolver ask again."""
    zone, asked, moved = ["127.0.0.1"], [], Event()

    def ask(name: str) -> list[str]:
        asked.append(name)
        return list(zone)

    resolver = Resolver(lambda _, __: moved.set(), ask=ask, refresh=3600.0, retry=0.0)
    subject = probe(snapshots.server(host="master-0", port=port), CHECK, resolver)
    resolver.want(["master-0"])
    assert [subject.run().result for _ in range(2)] == [CheckResult.L4OK] * 2
    zone[:] = ["127.0.0.2"]
    moved.clear()
    resolver.ask_soon("master-0")
    assert moved.wait(PATIENCE)
    assert subject.run().result is CheckResult.L4CON
    zone[:] = ["127.0.0.1"]
    moved.clear()
    assert moved.wait(PATIENCE)
    assert subject.run().result is CheckResult.L4OK
    resolver.close()


def test_a_name_without_an_address_fails_with_the_reason():
    """The operator reads what the name service said, or that it has said nothing yet."""

    def ask(name: str) -> list[str]:
        if name == "slow":
            gevent.sleep(PATIENCE)
        raise OSError(-2, "Name or service not known")

    resolver = Resolver(lambda _, __: None, ask=ask)
    resolver.want(["nobody", "slow"])
    nobody = probe(snapshots.server(host="nobody"), CHECK, resolver).run()
    assert (nobody.result, nobody.detail) == (
        CheckResult.L4CON,
        "name not resolved: Name or service not known",
    )
    slow = probe(snapshots.server(host="slow"), replace(CHECK, timeout=0.05), resolver).run()
    assert slow.detail == "name not resolved: no answer yet"
    resolver.close()


def test_a_check_may_have_its_own_address_and_port(port: int):
    """`address` and `port` of the check win over the server's."""
    resolver = Resolver(lambda _, __: None)
    elsewhere = snapshots.server(host="127.0.0.2", port=free_port())
    check = replace(CHECK, address="127.0.0.1", port=port)
    assert probe(elsewhere, check, resolver).run().result is CheckResult.L4OK
    assert probe(elsewhere, CHECK, resolver).run().result is CheckResult.L4CON


def test_one_time_out_bounds_the_name_and_the_check():
    """What the wait for a first address has taken is missing in the check itself."""

    def slow(_: str) -> list[str]:
        gevent.sleep(3.0)
        return ["127.0.0.1"]

    with socket.create_server(("127.0.0.1", 0)) as silent:
        resolver = Resolver(lambda _, __: None, ask=slow)
        resolver.want(["master-0"])
        check = snapshots.check("http", timeout=4.0)
        server = snapshots.server(host="master-0", port=silent.getsockname()[1])
        started = time.monotonic()
        outcome = probe(server, check, resolver).run()
        assert time.monotonic() - started < 6.5
        assert outcome.result is CheckResult.L7TOUT
        resolver.close()
