"""How connections end at HAProxy, and at the appliance with what `import` made of the same file.

Which timeout ended one, and in which phase, is told by both in the two letters of HAProxy's termination state
(configuration.txt, section 8.5). Each case is a frontend of its own, and all of them run at once at both.
"""

import contextlib
import re
import select
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
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

_SOON: Final = "500ms"
_LATE: Final = "1h"
_ENDED: Final = re.compile(r"ended (\S+) (\S\S)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A frontend with its pool: what is special to it, and what a client says before it is silent.

    `busy` connections are open before the one that is looked at. `address` is `closed` or `full` where the
    server is not there or does not accept.
    """

    name: str
    client: str = _LATE
    server: str = _LATE
    further: tuple[str, ...] = ()
    of_server: str = ""
    says: bytes = b""
    busy: int = 0
    leaves: bool = False
    address: str = ""


_CASES: Final = (
    Case(name="client-never-speaks", client=_SOON),
    Case(name="server-never-speaks", server=_SOON),
    Case(name="client-falls-silent", client=_SOON, says=b"line 1\n"),
    Case(name="server-falls-silent", server=_SOON, says=b"line 1\n"),
    Case(name="both-fall-silent-in-a-tunnel", further=(f"timeout tunnel {_SOON}",), says=b"line 1\n"),
    Case(name="queue-is-too-long", further=(f"timeout queue {_SOON}",), of_server="maxconn 1", busy=1),
    Case(name="server-refuses", further=("retries 0",), address="closed"),
    Case(name="server-does-not-accept", further=("retries 0", f"timeout connect {_SOON}"), address="full"),
    Case(name="server-goes", says=b"reset\n"),
    Case(name="client-goes", says=b"line 1\n", leaves=True),
)


def _text(ports: dict[str, int], server: int, full: int) -> str:
    """Return a haproxy.cfg with a section for each case."""
    places = {"": server, "closed": free_port(), "full": full}
    sections = "\n".join(_section(case, ports[case.name], places[case.address]) for case in _CASES)
    return f"""
global
  stats socket {{control}}
  log stdout format raw local0
defaults
  mode tcp
  log global
  log-format "ended %ft %ts"
  timeout connect 5s
  timeout queue 5s
{sections}
"""


def _section(case: Case, port: int, server: int) -> str:
    further = "".join(f"  {each}\n" for each in case.further)
    return (
        f"listen {case.name}\n  bind 127.0.0.1:{port}\n  timeout client {case.client}\n"
        f"  timeout server {case.server}\n{further}  server one 127.0.0.1:{server} {case.of_server}\n"
    )


@contextlib.contextmanager
def _full() -> Iterator[int]:
    """Listen and never accept, with a queue that is full; yields the port."""
    with socket.socket() as listener, ExitStack() as stack:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            filler = stack.enter_context(socket.socket())
            filler.settimeout(0.0)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


class _Clients(ExitStack):
    """Open connections. Each is closed when the proxy ends it, as clients do.

    HAProxy ends the direction whose timeout is over, and the other one only when its client closes.
    """

    def __init__(self) -> None:
        super().__init__()
        self._open: list[socket.socket] = []

    def connect(self, ports: dict[str, int]) -> None:
        """Open the connections of all cases, and say what they say."""
        for case in _CASES:
            for _ in range(case.busy):
                self._one(ports[case.name], b"line 1\n")
            try:
                connection = self._one(ports[case.name], case.says)
            except ConnectionResetError:
                continue  # it was ended before its client came to look whether it is open
            if case.leaves:
                connection.shutdown(socket.SHUT_WR)

    def wait_for(self, condition: Callable[[], bool], *, what: str) -> None:
        """Wait for a condition, and close what is ended meanwhile."""
        wait_until(lambda: self._close_ended() or condition(), what=what, timeout=30)

    def _one(self, port: int, says: bytes) -> socket.socket:
        connection = self.enter_context(socket.create_connection(("127.0.0.1", port), 10))
        self._open.append(connection)
        if says:
            connection.sendall(says)
        if says.startswith(b"line"):
            assert connection.recv(100)
        return connection

    def _close_ended(self) -> bool:
        for each in select.select(self._open, (), (), 0.0)[0]:
            with contextlib.suppress(ConnectionError):
                if each.recv(100):
                    continue
            self._open.remove(each)
            each.close()
        return False


def test_connections_end_for_the_same_reasons():
    """The two letters are the same for each case: who ended the connection, and in which phase."""
    names = {case.name for case in _CASES}
    with ExitStack() as stack:
        server = stack.enter_context(Backend("server"))
        full = stack.enter_context(_full())
        ports, own = ({name: free_port() for name in sorted(names)} for _ in range(2))
        haproxy = stack.enter_context(HAProxy(_text(ports, server.port, full)))
        imported = import_result(
            [translate(_text(own, server.port, full), source="haproxy.cfg", environment={}, read=NO_FILES)]
        )
        assert imported.ok, imported.problems
        config = yaml.safe_load(imported.yaml)
        config["api"]["workers"] = 1
        appliance = stack.enter_context(Appliance({**config, "log": {"connections": True}}))
        clients = stack.enter_context(_Clients())
        clients.connect(ports)
        clients.connect(own)
        clients.wait_for(lambda: names <= set(_theirs(haproxy)), what="all ended at HAProxy")
        clients.wait_for(lambda: names <= set(_ours(appliance)), what="all ended at the appliance")

        assert _ours(appliance) == _theirs(haproxy)


def _theirs(haproxy: HAProxy) -> dict[str, str]:
    return dict(_ENDED.findall(haproxy.log()))


def _ours(appliance: Appliance) -> dict[str, str]:
    return {str(each["frontend"]): str(each["termination"]) for each in appliance.events("connection")}


@pytest.mark.slow("real time-outs")
def test_limits_hold_back_the_same_connections():
    """With a limit of a frontend or a server as many are answered at once, and the next when one ends."""
    with ExitStack() as stack:
        server = stack.enter_context(Backend("server"))
        ports, own = ({name: free_port() for name in ("few", "queue")} for _ in range(2))
        stack.enter_context(HAProxy(_limited(ports, server.port)))
        imported = import_result(
            [translate(_limited(own, server.port), source="haproxy.cfg", environment={}, read=NO_FILES)]
        )
        assert imported.ok, imported.problems
        config = yaml.safe_load(imported.yaml)
        config["api"]["workers"] = 1
        stack.enter_context(Appliance(config))
        for name in ports:
            assert _answered_at_once(own[name]) == _answered_at_once(ports[name]) == 2, name


def _limited(ports: dict[str, int], server: int) -> str:
    return f"""
global
  stats socket {{control}}
defaults
  mode tcp
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  timeout queue 1h
listen few
  bind 127.0.0.1:{ports["few"]}
  maxconn 2
  server one 127.0.0.1:{server}
listen queue
  bind 127.0.0.1:{ports["queue"]}
  server one 127.0.0.1:{server} maxconn 2
"""


def _answered_at_once(port: int) -> int:
    """Open four connections, and return how many are answered; then end one, and wait for the next answer."""
    with ExitStack() as stack:
        opened = [stack.enter_context(socket.create_connection(("127.0.0.1", port), 10)) for _ in range(4)]
        for each in opened:
            each.sendall(b"line 1\n")
        answered = [each for each in opened if _says(each, 0.7)]
        answered[0].close()
        waiting = [each for each in opened if each not in answered]
        served, _, _ = select.select(waiting, [], [], 10.0)  # HAProxy may let in either of them
        assert served
        return len(answered)


def _says(connection: socket.socket, seconds: float) -> bool:
    """Return whether an answer comes in this time; none comes after it where a limit holds it back."""
    connection.settimeout(seconds)
    with contextlib.suppress(TimeoutError):
        return bool(connection.recv(100))
    return False
