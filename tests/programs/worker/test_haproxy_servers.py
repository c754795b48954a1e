"""Which server HAProxy gives a connection to, and the appliance with what `import` made of the same file."""

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final

import pytest
import yaml
from support.network.ports import free_port, free_ports
from support.peers.backend import Backend
from support.peers.haproxy import HAProxy
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance
from support.translation.haproxy_files import NO_FILES

from appliance.translation.haproxy.reader import translate
from appliance.translation.import_result import import_result

pytestmark = [pytest.mark.programs, pytest.mark.needs("haproxy")]

_BEFORE: Final = """
global
  stats socket {control}
defaults
  mode tcp
  timeout connect 2s
  timeout client 1m
  timeout server 1m
  timeout queue 1m
  default-server inter 200ms fastinter 100ms downinter 200ms rise 1 fall 1
"""
_PATIENCE: Final = 30.0


def _imported(text: str) -> dict[str, Any]:
    found = import_result([translate(_BEFORE + text, source="haproxy.cfg", environment={}, read=NO_FILES)])
    assert found.ok, found.problems
    config: dict[str, Any] = yaml.safe_load(found.yaml)
    config["api"]["workers"] = 1
    return config


@contextmanager
def _connected(
    port: int, *, host: str = "127.0.0.1", client: str = "127.0.0.1"
) -> Iterator[Callable[[], str]]:
    """Connect a client, and return what says which server it has come to."""
    with socket.create_connection((host, port), _PATIENCE, source_address=(client, 0)) as connection:

        def server() -> str:
            connection.sendall(b"line .\n")
            found = b""
            while not found.endswith(b"\n"):
                read = connection.recv(100)
                if not read:
                    break
                found += read
            return found.decode().partition(" ")[0]

        yield server


def _who(port: int, **where: str) -> str:
    """Return which server a new connection comes to, "" for none."""
    try:
        with _connected(port, **where) as server:
            return server()
    except OSError:
        return ""


@pytest.mark.promise("docs/foreign-files.md", "`balance first` fills servers as HAProxy does")
def test_servers_are_filled_in_the_same_order():
    """By their `id`, each up to its `maxconn`; who waits for a place gets the one that becomes free."""
    names = ("one", "two", "three")
    with ExitStack() as stack:
        servers = {name: stack.enter_context(Backend(name)).port for name in names}
        theirs, ours = free_ports(2)

        def text(port: int) -> str:
            lines = (
                f"  server {name} 127.0.0.1:{servers[name]} weight {weight} maxconn 2 {number}\n"
                for name, weight, number in (("one", 200, ""), ("two", 1, "id 9"), ("three", 50, "id 1"))
            )
            return f"listen l\n  bind 127.0.0.1:{port}\n  balance first\n{''.join(lines)}"

        stack.enter_context(HAProxy(_BEFORE + text(theirs)))
        stack.enter_context(Appliance(_imported(text(ours))))
        for port in (theirs, ours):
            with ExitStack() as held:
                connections = [ExitStack() for _ in range(6)]
                order: list[str] = []
                for each in connections:
                    held.enter_context(each)
                    order.append(each.enter_context(_connected(port))())
                assert order == ["three", "three", "one", "one", "two", "two"]
                for at, expected in ((2, "one"), (5, "two"), (0, "three")):
                    connections[at].close()
                    assert held.enter_context(_connected(port))() == expected


def test_clients_stick_to_their_server():
    """Each address keeps its server, and only those of one that is down go to another."""
    names = ("one", "two", "three")
    clients = [f"127.0.3.{number}" for number in range(1, 13)]
    with ExitStack() as stack:
        servers = {name: stack.enter_context(Backend(name)) for name in names}
        theirs, ours = free_ports(2)

        def text(port: int) -> str:
            lines = (f"  server {name} 127.0.0.1:{each.port} check\n" for name, each in servers.items())
            stick = "  stick-table type ip size 1k expire 1h\n  stick on src\n"
            return f"listen l\n  bind 127.0.0.1:{port}\n  balance roundrobin\n{stick}{''.join(lines)}"

        stack.enter_context(HAProxy(_BEFORE + text(theirs)))
        stack.enter_context(Appliance(_imported(text(ours))))

        def placed(port: int) -> dict[str, str]:
            return {client: _who(port, client=client) for client in clients}

        def settled(port: int, used: frozenset[str]) -> Mapping[str, str]:
            wait_until(lambda: frozenset(placed(port).values()) == used, what=f"{used} serve", timeout=20)
            return placed(port)

        before = {port: settled(port, frozenset(names)) for port in (theirs, ours)}
        for port in (theirs, ours):
            assert [placed(port) for _ in range(3)] == [before[port]] * 3
        servers["two"].stop()
        for port in (theirs, ours):
            after = settled(port, frozenset({"one", "three"}))
            assert {client: name for client, name in before[port].items() if name != "two"}.items() <= (
                after.items()
            )


def _port_before_another() -> int:
    """Return a free port with another one behind it."""
    while True:
        port = free_port()
        with suppress(OSError), socket.create_server(("127.0.0.6", port + 1)):
            return port


@pytest.mark.promise("docs/foreign-files.md", "a server without a port has the client's, as in HAProxy")
def test_each_port_leads_to_the_same_port():
    """Who comes to one of several ports is connected to that port of a server that has none."""
    ports = [_port_before_another(), _port_before_another()]
    own = free_port()
    with ExitStack() as stack:
        for port in ports:
            stack.enter_context(Backend(f"at-{port}", port=port, host="127.0.0.5"))
            stack.enter_context(Backend(f"behind-{port}", port=port + 1, host="127.0.0.6"))
        stack.enter_context(Backend("own", port=own, host="127.0.0.7"))

        def text(host: str) -> str:
            binds = "".join(f"  bind {host}:{port}\n" for port in ports)
            servers = f"  server s 127.0.0.5\n  server t 127.0.0.6:+1\n  server u 127.0.0.7:{own}\n"
            return f"frontend f\n{binds}  default_backend b\nbackend b\n{servers}"

        stack.enter_context(HAProxy(_BEFORE + text("127.0.0.2")))
        stack.enter_context(Appliance(_imported(text("127.0.0.3"))))
        for port in ports:
            for host in ("127.0.0.2", "127.0.0.3"):
                found = {_who(port, host=host) for _ in range(6)}
                assert found == {f"at-{port}", f"behind-{port}", "own"}, host


def test_an_address_that_two_sections_bind():
    """HAProxy has both of them serve it, by chance, without a word: `import` has a line that says so."""
    with ExitStack() as stack:
        servers = {name: stack.enter_context(Backend(name)).port for name in ("one", "two")}
        port = free_port()
        text = "".join(
            f"listen {name}\n  bind 127.0.0.1:{port}\n  server {name} 127.0.0.1:{server}\n"
            for name, server in servers.items()
        )
        stack.enter_context(HAProxy(_BEFORE + text))
        found: set[str] = set()

        def both() -> bool:
            found.add(_who(port))
            return found >= {"one", "two"}

        wait_until(both, what="both sections serve", timeout=20)
    read = translate(_BEFORE + text, source="haproxy.cfg", environment={}, read=NO_FILES)
    assert [f"binds `127.0.0.1:{port}` already" in str(each.reason) for each in read.refused] == [True]
