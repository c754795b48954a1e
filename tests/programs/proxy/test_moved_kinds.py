"""Sessions of every kind move with a reload: in a queue, connecting, held back, half-closed, renamed.

And the reloads are of every kind: with other limits, with another `reload.sessions`, several at once.
"""

import contextlib
import hashlib
import socket
import threading
from collections.abc import Iterator, Mapping

import pytest
import yaml
from support.load.load import Load
from support.network.ports import free_port
from support.processes.waiting import wait_until
from support.proxy.moving_site import Site, site
from support.supervisor.appliance import Appliance
from support.values import body
from support.values.client_hellos import message, records, server_name

pytestmark = [
    pytest.mark.programs,
    pytest.mark.data_path,
    pytest.mark.slow("generations of real workers under load"),
]

_LARGE = 24 << 20


@contextlib.contextmanager
def _origin(backlog: int = 64) -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=backlog) as listener:
        listener.settimeout(60)
        yield listener


def _with(config: dict[str, object], name: str, port: int, origin: socket.socket, **more: object) -> None:
    """Add a frontend and a pool of one server, that the test is; `more` is of the server."""
    group, pools = config["api"], config["pools"]
    assert isinstance(group, dict)
    assert isinstance(pools, dict)
    group["frontends"][name] = {"bind": [f"127.0.0.1:{port}"], "pool": name}
    address = f"127.0.0.1:{origin.getsockname()[1]}"
    pools[name] = {"check": False, "servers": {"own": {"address": address, **more}}}


def _client(port: int, first: bytes = b"") -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), timeout=60)
    client.sendall(first)
    return client


def _phases(made: Site) -> list[str]:
    return sorted(str(each["phase"]) for each in made.listed())


def test_those_that_wait_move_too():
    """The queue of a full server, and a connect that nobody answers: the old workers do not wait for them."""
    with contextlib.ExitStack() as stack:
        made = stack.enter_context(site())
        busy, slow = stack.enter_context(_origin()), stack.enter_context(_origin(backlog=0))
        ports = free_port(), free_port(), free_port()

        def config(revision: int) -> dict[str, object]:
            written = made.config(workers=1)  # each worker has at least one place at a server
            if revision % 2:
                _with(written, "more", ports[2], busy)
            _with(written, "busy", ports[0], busy, max_connections=1)
            _with(written, "slow", ports[1], slow)
            written["defaults"] = {"drain": "10m", "timeouts": {"connect": "5m", "queue": "5m"}}
            return written

        assert made.appliance.reload(config(0))["ok"] is True
        first = stack.enter_context(_client(ports[0], b"0"))
        server = stack.enter_context(busy.accept()[0])
        assert server.recv(9) == b"0"
        queued = []
        for number in (1, 2, 3):  # one after the other: the queue keeps their order
            queued.append(stack.enter_context(_client(ports[0], b"%d" % number)))
            wait_until(lambda: _phases(made).count("queued") == len(queued), what="one more waits")
        # The accept queue is full with this one, and answers no SYN more.
        stack.enter_context(socket.create_connection(slow.getsockname(), timeout=60))
        connecting = stack.enter_context(_client(ports[1], b"slow"))
        wait_until(lambda: "connecting" in _phases(made), what="one connects")
        for revision in (1, 2):
            made.reload(config(revision))
            made.wait_for_one_generation()
        assert _phases(made).count("queued") == 3
        assert _phases(made).count("connecting") == 1
        slow.listen(16)  # it has room for the next SYN
        first.close()
        server.close()
        for number, client in enumerate(queued, 1):
            with busy.accept()[0] as following:
                assert following.recv(9) == b"%d" % number
                following.sendall(b"served")
                assert client.recv(9) == b"served"
                client.close()
        accepted = [stack.enter_context(slow.accept()[0]) for _ in range(2)]
        accepted[-1].sendall(b"late")
        assert accepted[-1].recv(9) == b"slow"
        assert connecting.recv(9) == b"late"
        assert not made.appliance.events("sessions-lost")
        assert not made.appliance.events("internal-error")


def test_renamed_frontends_and_pools_keep_their_sessions():
    """They go on with the frontend that has the address now, and with its pool if it has the same server."""
    with site() as made, _origin() as origin, contextlib.ExitStack() as stack:
        port = free_port()
        written = made.config(workers=1)
        _with(written, "before", port, origin)
        assert made.appliance.reload(written)["ok"] is True
        client = stack.enter_context(_client(port, b"hello"))
        server = stack.enter_context(origin.accept()[0])
        assert server.recv(9) == b"hello"
        written = made.config(workers=1)
        _with(written, "after", port, origin)
        made.reload(written)
        made.wait_for_one_generation()
        (told,) = (each for each in made.listed() if each["frontend"] == "after")
        assert told["server"] == "after/own"
        server.sendall(b"still there")
        assert client.recv(20) == b"still there"


def test_sessions_by_server_name_are_kept_where_names_lead_elsewhere():
    """An open one goes on with the pool that has its server now; a late hello is led all the same."""
    first, second = (records(message(server_name(each))) for each in (b"a.example.com", b"b.example.com"))
    with site() as made, _origin() as origin, _origin() as other, contextlib.ExitStack() as stack:
        port = free_port()

        def config(pool: str) -> dict[str, object]:
            written = made.config(workers=1)
            _with(written, "rest", free_port(), other)
            _with(written, "kept", port, other)
            _with(written, pool, free_port(), origin)
            written["api"]["frontends"]["kept"] |= {
                "pool": "rest",
                "sni": [
                    {"names": ["a.example.com"], "pool": pool},
                    {"names": ["b.example.com"], "pool": "kept"},
                ],
                "timeouts": {"hello": "10m"},
            }
            return written

        assert made.appliance.reload(config("before"))["ok"] is True
        client = stack.enter_context(_client(port, first))
        server = stack.enter_context(origin.accept()[0])
        late = stack.enter_context(_client(port, second[:9]))
        wait_until(lambda: "inspecting" in _phases(made), what="the late one waits")
        made.reload(config("after"))
        stack.enter_context(_client(port, first))
        stack.enter_context(origin.accept()[0])
        late.sendall(second[9:])
        stack.enter_context(other.accept()[0])
        made.wait_for_one_generation()
        told = sorted(str(each["server"]) for each in made.listed() if each["frontend"] == "kept")
        assert told == ["after/own", "after/own", "kept/own"]
        assert _all(server, len(first)) == first
        server.sendall(b"still there")
        assert _all(client, 11) == b"still there"


def _all(connection: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size and (data := connection.recv(size - len(got))):
        got += data
    return got


def test_what_is_held_back_arrives_whole():
    """A client that does not read, with megabytes on their way and urgent data, over reloads in between."""
    with site() as made, _origin() as origin, contextlib.ExitStack() as stack:
        port = free_port()

        def config(workers: int) -> dict[str, object]:
            written = made.config(workers=workers)
            _with(written, "own", port, origin)
            return written

        assert made.appliance.reload(config(1))["ok"] is True
        client = stack.enter_context(_client(port, b"go"))
        server = stack.enter_context(origin.accept()[0])
        server.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
        server.settimeout(60)
        assert server.recv(9) == b"go"
        data = b"".join(body.chunks(_LARGE))
        sending = threading.Thread(target=_send_and_end, args=(server, data))
        sending.start()
        stack.callback(sending.join)
        for workers in (2, 1, 2):
            made.reload(config(workers))
            made.wait_for_one_generation()
            client.send(b"u", socket.MSG_OOB)
            client.sendall(b"d")
        digest = hashlib.sha256()
        while chunk := client.recv(1 << 16):
            digest.update(chunk)
        assert digest.digest() == hashlib.sha256(data).digest()
        received = b""
        while len(received) < 6:
            received += server.recv(6)
        assert received == b"ududud"


def _send_and_end(server: socket.socket, data: bytes) -> None:
    server.sendall(data)
    server.shutdown(socket.SHUT_WR)


def test_a_lower_limit_ends_none():
    """Those that came count: nothing more is accepted, until as many have ended."""
    with site() as made, Load(port=made.port, sessions=30) as load:
        load.wait_for_sessions()
        written = made.config(workers=2)
        defaults = written["defaults"]
        assert isinstance(defaults, dict)
        defaults["max_connections"] = 10
        made.reload(written)
        made.wait_for_one_generation()
        lines = load.report().lines
        wait_until(lambda: load.report().lines > lines + 30, what="all go on")
        assert load.report().ended == []
        assert len(made.listed()) == 30
        with _client(made.port, b"who\n") as waiting:
            made.appliance.command("sessions", "kill", "--server", "masters/master-0")
            assert waiting.recv(20) == b"master-0\n"


def test_what_becomes_of_sessions_is_said_by_the_reload_that_brings_the_workers():
    """`drain` keeps them; `move`, in a later reload, takes those of generations that drain already, too."""
    with site() as made, Load(port=made.port, sessions=5) as load:
        load.wait_for_sessions()
        made.sessions = "drain"
        made.reload(made.config(workers=2))
        wait_until(lambda: _sessions(made.appliance) == {1: 5, 2: 0}, what="they stay")
        load.open_sessions(4)
        load.wait_for_sessions(9)
        made.sessions = "move"
        made.reload(made.config(workers=1))
        made.wait_for_one_generation()
        assert _sessions(made.appliance) == {3: 9}
        assert load.report().ended == []


def test_several_reloads_at_once_lose_nothing():
    """Each has its turn, and sessions follow to the last generation."""
    with site() as made, Load(port=made.port, sessions=50, rate=50.0) as load:
        load.wait_for_sessions()
        with contextlib.ExitStack() as stack:
            lines = [stack.enter_context(made.appliance.reload_connection()) for _ in range(6)]
            for number, line in enumerate(lines):
                _replace(made.appliance, made.config(workers=1 + number % 2))
                line.sendall(b"reload\n")
            for line in lines:
                assert b'"ok":true' in line.recv(4096).replace(b" ", b"")
        assert made.appliance.reload(made.config(workers=3))["ok"] is True
        wait_until(lambda: len(made.appliance.accepting()) == 3, what="three workers accept")
        made.wait_for_one_generation()
        report = load.report()
        assert report.ended == []
        assert report.failures == {}


def _replace(appliance: Appliance, config: dict[str, object]) -> None:
    """Write the file in one step: an earlier reload may read it at any moment."""
    scratch = appliance.paths.config.with_suffix(".new")
    scratch.write_text(yaml.safe_dump(config))
    scratch.replace(appliance.paths.config)


def _sessions(appliance: Appliance) -> Mapping[int, int]:
    found = dict[int, int]()
    for each in appliance.workers():
        found[each.generation] = found.get(each.generation, 0) + each.sessions
    return found
