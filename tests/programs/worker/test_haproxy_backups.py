"""What HAProxy does with backups, and the appliance with what `import` made of the same file."""

import select
import socket
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

import pytest
import yaml
from support.network.ports import free_port
from support.peers.backend import Backend
from support.peers.haproxy import HAProxy
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance
from support.translation.haproxy_files import NO_FILES

from appliance.translation.haproxy.reader import translate
from appliance.translation.import_result import import_result

pytestmark = [pytest.mark.programs, pytest.mark.needs("haproxy")]

_SERVERS: Final = ("one", "two", "three", "four")
_PROXIES: Final = ("first", "together", "hashed")
_DEFAULTS: Final = """
global
  stats socket {control}
defaults
  mode tcp
  timeout connect 2s
  timeout client 1m
  timeout server 1m
  default-server inter 200ms fastinter 100ms downinter 200ms rise 1 fall 1
"""


def _text(ports: dict[str, int], servers: dict[str, int]) -> str:
    """Return a haproxy.cfg with a primary server and three backups, used one by one or together."""
    lines = [f"  server {name} 127.0.0.1:{port} check" for name, port in servers.items()]
    listed = "\n".join([lines[0], *(f"{each} backup" for each in lines[1:])])
    return f"""{_DEFAULTS}listen first
  bind 127.0.0.1:{ports["first"]}
{listed}
listen together
  bind 127.0.0.1:{ports["together"]}
  option allbackups
{listed}
listen hashed
  bind 127.0.0.1:{ports["hashed"]}
  balance source
{listed}
"""


def _relieved_text(ports: dict[str, int], servers: dict[str, int]) -> str:
    """Return a haproxy.cfg whose backups lose their sessions when another server is back, or keep them."""
    spare = f"server two 127.0.0.1:{servers['two']} check backup"
    return f"""{_DEFAULTS}listen closed
  bind 127.0.0.1:{ports["closed"]}
  server one 127.0.0.1:{servers["one"]} check on-marked-up shutdown-backup-sessions
  {spare}
listen kept
  bind 127.0.0.1:{ports["kept"]}
  server one 127.0.0.1:{servers["one"]} check
  {spare} on-marked-up shutdown-backup-sessions
"""


def _imported(text: str) -> Appliance:
    """Return the appliance with what `import` makes of a haproxy.cfg."""
    imported = import_result([translate(text, source="haproxy.cfg", environment={}, read=NO_FILES)])
    assert imported.ok, imported.problems
    return Appliance(yaml.safe_load(imported.yaml))


def _line(session: socket.socket, number: int) -> str:
    """Return the answer to a line in a session, "" if it has ended."""
    try:
        session.sendall(b"line %d\n" % number)
        return session.recv(100).decode().strip()
    except ConnectionError:
        return ""


def _who(port: int) -> str:
    """Return who answers a new connection, "" for nobody."""
    try:
        with socket.create_connection(("127.0.0.1", port), 10) as connection:
            connection.sendall(b"who\n")
            return connection.recv(100).decode().strip()
    except OSError:
        return ""


def _used(port: int) -> frozenset[str]:
    """Return who answers twelve new connections."""
    return frozenset(_who(port) for _ in range(12))


@pytest.mark.promise("docs/concepts.md", "of several backups one is used, as in HAProxy")
def test_the_same_backups_are_used():
    """Servers go one by one and come back: at every step the same ones take new connections on both sides."""
    with ExitStack() as stack:
        backends = {name: stack.enter_context(Backend(name)) for name in _SERVERS}
        addresses = {name: each.port for name, each in backends.items()}
        ports, own = ({name: free_port() for name in _PROXIES} for _ in range(2))
        stack.enter_context(HAProxy(_text(ports, addresses)))
        stack.enter_context(_imported(_text(own, addresses)))

        def both(proxy: str, *expected: str) -> Callable[[], bool]:
            return lambda: _used(ports[proxy]) == _used(own[proxy]) == frozenset(expected)

        def settled(what: str, *, first: str, together: tuple[str, ...]) -> None:
            wait_until(both("first", first), what=f"{what}: {first}", timeout=20)
            wait_until(both("hashed", first), what=f"{what}: {first}, hashed", timeout=20)
            wait_until(both("together", *together), what=f"{what}: {together}", timeout=20)

        settled("all are up", first="one", together=("one",))
        backends["one"].stop()
        settled("the primary is down", first="two", together=("two", "three", "four"))
        with socket.create_connection(("127.0.0.1", own["first"]), 10) as session:
            session.sendall(b"line 1\n")
            assert session.recv(100) == b"two 1\n"
            stack.enter_context(Backend("one", port=addresses["one"]))
            settled("the primary is back", first="one", together=("one",))
            session.sendall(b"line 2\n")
            assert session.recv(100) == b"two 2\n", "a session at a backup goes on"


def _is_ended(session: socket.socket) -> bool:
    poll = select.poll()
    poll.register(session, select.POLLRDHUP)
    return bool(poll.poll(0))


@pytest.mark.promise(
    "docs/concepts.md", "sessions on backups end when another server comes up, as in HAProxy"
)
def test_the_same_sessions_end_when_a_server_comes_back():
    """Those on the backup, where the server that comes back has `on-marked-up`; all others go on."""
    proxies = ("closed", "kept")
    with ExitStack() as stack:
        one, two = (stack.enter_context(Backend(name)) for name in ("one", "two"))
        addresses = {"one": one.port, "two": two.port}
        ports, own = ({name: free_port() for name in proxies} for _ in range(2))
        stack.enter_context(HAProxy(_relieved_text(ports, addresses)))
        stack.enter_context(_imported(_relieved_text(own, addresses)))
        both = {
            f"{side} {name}": each[name]
            for side, each in (("HAProxy", ports), ("own", own))
            for name in proxies
        }

        def all_served_by(name: str) -> bool:
            return {_who(port) for port in both.values()} == {name}

        wait_until(lambda: all_served_by("one"), what="the first server serves", timeout=20)
        one.stop()
        wait_until(lambda: all_served_by("two"), what="the backup serves", timeout=20)
        sessions = {
            name: stack.enter_context(socket.create_connection(("127.0.0.1", port), 10))
            for name, port in both.items()
        }
        assert {_line(each, 1) for each in sessions.values()} == {"two 1"}
        stack.enter_context(Backend("one", port=addresses["one"]))
        wait_until(lambda: all_served_by("one"), what="the first server is back", timeout=20)
        # The worker of a session may learn that later than the one that was asked.
        closed = [each for name, each in sessions.items() if name.endswith("closed")]
        wait_until(lambda: all(map(_is_ended, closed)), what="their sessions end")
        after = {name: _line(each, 2) for name, each in sessions.items()}
        assert after == {"HAProxy closed": "", "own closed": "", "HAProxy kept": "two 2", "own kept": "two 2"}
