"""Checks follow a server's name, and have it asked for again when they fail."""

import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

import gevent
import pytest
from gevent.event import Event
from support.network.ports import free_port
from support.peers.haproxy import HAProxy
from support.processes.waiting import wait_until
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
    return ServerProbe(
        server,
        check,
        host=lambda: resolver.address(server.host, timeout=0.0),
        contexts=TlsContexts(),
        resolver=resolver,
    )


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


def test_further_checks_all_have_to_pass(port: int):
    """The first one that fails is told by its name, and those after it are not made."""
    dead = free_port()
    good, bad = replace(CHECK, port=port), replace(CHECK, port=dead)
    resolver = Resolver(lambda _, __: None)
    server = snapshots.server(host="127.0.0.1", port=port)
    found = [
        probe(server, replace(CHECK, also=also), resolver).run()
        for also in ((("a", good), ("b", good)), (("a", good), ("b", bad), ("c", good)))
    ]
    outcome = probe(server, replace(bad, also=(("a", good),)), resolver).run()

    assert [each.result for each in found] == [CheckResult.L4OK, CheckResult.L4CON]
    assert found[1].detail == "b: connection refused"
    assert (outcome.result, outcome.detail) == (CheckResult.L4CON, "connection refused")


@pytest.mark.programs
@pytest.mark.needs("haproxy")
def test_several_connections_as_in_haproxy(port: int):
    """A server of which one port is dead is down, whichever of the connections goes there."""
    dead = free_port()
    pairs = {"both": (port, port), "first": (dead, port), "second": (port, dead)}
    resolver = Resolver(lambda _, __: None)
    ours = {}
    for name, (first, second) in pairs.items():
        check = replace(CHECK, port=first, also=(("connect-2", replace(CHECK, port=second)),))
        ours[name] = probe(snapshots.server(host="127.0.0.1", port=1), check, resolver).run().passed
    with HAProxy(_haproxy_cfg(pairs)) as haproxy:
        wait_until(lambda: len(haproxy.check_results()) == len(pairs), what="HAProxy has checked all")
        theirs = {name: result.endswith("OK") for name, result in haproxy.check_results().items()}

    assert ours == theirs == {"both": True, "first": False, "second": False}


def _haproxy_cfg(pairs: Mapping[str, tuple[int, int]]) -> str:
    backends = "\n".join(
        f"backend {name}\n  option tcp-check\n  tcp-check connect port {first}\n"
        f"  tcp-check connect port {second}\n  server {name} 127.0.0.1:1 check inter 1s"
        for name, (first, second) in pairs.items()
    )
    return f"""
global
  stats socket {{control}}
defaults
  mode tcp
  timeout connect 5s
  timeout client 5s
  timeout server 5s
frontend unused
  bind 127.0.0.1:{free_port()}
  default_backend both
{backends}
"""


def test_a_server_that_shares_a_name_is_checked_at_its_own_address(port: int):
    """The name may lead elsewhere; one for which no address is left fails with the reason."""
    resolver = Resolver(lambda _, __: None, ask=lambda _: ["127.0.0.2", "127.0.0.1"])
    resolver.want(["scanner"])
    server = snapshots.server(host="scanner", port=port)
    outcomes = [
        ServerProbe(server, CHECK, host=lambda: at, contexts=TlsContexts(), resolver=resolver).run()  # noqa: B023  # run at once
        for at in ("127.0.0.1", "127.0.0.2", "")
    ]
    resolver.close()
    assert [each.passed for each in outcomes] == [True, False, False]
    assert outcomes[2].detail == "no address: scanner has fewer addresses than servers"
