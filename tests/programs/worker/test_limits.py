"""Limits of a worker: queues, connection limits, descriptors, ports, addresses, ages and idle times."""

import os
import resource
import socket
from collections.abc import Callable

import pytest
from msgspec import structs
from support.worker.trace import Origin, Relay, Setting, is_reset, read_all, relay, reset

from appliance.model.end_reasons import EndReason
from appliance.model.server_states import AdminState, HealthVerdict
from appliance.model.snapshot.pools import OnDown, OnUp

pytestmark = pytest.mark.programs

ONE = {"max_connections": 1}


def test_full_server_is_waited_for():
    """A client beyond the server's limit is served when another one ends, with all that it sent meanwhile."""
    with relay(Setting(origins=[Origin()], each=ONE)) as running:
        first, server = running.pair()
        second = running.connect()
        second.sendall(b"waiting ")
        running.until(lambda: running.server().queued == 1, "one waits")
        second.sendall(b"long")
        first.close()
        server.close()
        assert running.setting.origins[0].accept().recv(100) in {b"waiting long", b"waiting "}
        running.until(lambda: running.server().queued == 0, "nobody waits")


def test_waiters_are_served_in_order():
    """Whoever came first is served first."""
    with relay(Setting(origins=[Origin()], each=ONE)) as running:
        _, server = running.pair()
        waiters = []
        for name in (b"1", b"2", b"3"):
            waiter = running.connect()
            waiter.sendall(name)
            waiters.append(waiter)
            running.until(lambda: running.server().queued == len(waiters), "queued")
        for name in (b"1", b"2", b"3"):
            reset(server)
            server = running.setting.origins[0].accept()
            assert server.recv(10) == name


def test_full_queue_refuses():
    """A client beyond the queue's bound is refused at once."""
    with relay(Setting(origins=[Origin()], each=ONE, back={"max_queue": 1})) as running:
        held = running.pair()
        waiter = running.connect()
        running.until(lambda: running.server().queued == 1, "one waits")
        assert running.refuses()
        running.ended(EndReason.QUEUE_FULL)
        assert len(held) == 2
        assert waiter.fileno() >= 0


def test_queue_has_a_timeout():
    """A client that has waited for too long is refused."""
    with relay(Setting(origins=[Origin()], each=ONE, back={"timeout_queue": 0.2})) as running:
        held = running.pair()
        assert running.refuses()
        running.ended(EndReason.QUEUE_TIMEOUT)
        assert running.server().queued == 0
        assert len(held) == 2


@pytest.mark.parametrize(("said", "leave"), [(b"", socket.socket.close), (b"", reset), (b"gone", reset)])
def test_client_that_leaves_the_queue_frees_its_place(said: bytes, leave: Callable[[socket.socket], None]):
    """A client that resets, or ends without a word, while it waits is forgotten; the next one is served."""
    with relay(Setting(origins=[Origin()], each=ONE)) as running:
        _, server = running.pair()
        gone = running.connect()
        gone.sendall(said)
        running.until(lambda: running.server().queued == 1, "one waits")
        last = running.connect()
        last.sendall(b"last")
        running.until(lambda: running.server().queued == 2, "two wait")
        leave(gone)
        running.ended(EndReason.CLIENT_ABORT)
        reset(server)
        assert running.setting.origins[0].accept().recv(10) == b"last"


def test_half_closed_client_keeps_its_place_in_the_queue():
    """A client that asks and sends its end while it waits is served, and gets its answer."""
    with relay(Setting(origins=[Origin()], each=ONE)) as running:
        _, first = running.pair()
        client = running.connect()
        client.sendall(b"question")
        running.until(lambda: running.server().queued == 1, "one waits")
        client.shutdown(socket.SHUT_WR)
        reset(first)
        server = running.setting.origins[0].accept()
        assert [server.recv(10), server.recv(10)] == [b"question", b""]
        server.sendall(b"answer")
        server.close()
        assert [client.recv(10), client.recv(10)] == [b"answer", b""]


def test_unchecked_servers_are_waited_for():
    """While the first check runs clients wait, and are served as soon as the board says that it is up."""
    with relay(Setting(origins=[Origin()])) as running:
        running.publish(HealthVerdict.UNKNOWN)
        clients = [_queued(running)]
        running.publish(HealthVerdict.UP)
        server = running.setting.origins[0].accept()
        clients[0].sendall(b"hello")
        assert server.recv(10) == b"hello"


def _queued(running: Relay) -> socket.socket:
    """Return a client that waits; those that came before the worker had seen the board are closed."""
    while True:
        client = running.connect()
        if _phase(running, client) == "queued":
            return client
        running.setting.origins[0].accept().close()
        reset(client)


def _phase(running: Relay, client: socket.socket) -> object:
    """Return the phase of a client's session once it is past `connecting`."""
    name = f"127.0.0.1:{client.getsockname()[1]}"
    phases = {"connecting"}

    def settled() -> bool:
        phases.clear()
        phases.update(str(each["phase"]) for each in running.sessions() if each["client"] == name)
        return bool(phases - {"connecting"})

    running.until(settled, "it waits or is served")
    return phases.pop()


def test_unchecked_servers_that_turn_out_down_refuse():
    """Clients that waited for the first check are refused when it fails."""
    with relay(Setting(origins=[Origin()])) as running:
        running.publish(HealthVerdict.UNKNOWN)
        client = _queued(running)
        running.publish(HealthVerdict.DOWN)
        assert is_reset(client)


def test_frontend_limit_leaves_clients_in_the_backlog():
    """At max_connections nothing more is accepted; whoever waits is accepted when one ends."""
    with relay(Setting(origins=[Origin()], front=ONE)) as running:
        first, server = running.pair()
        second = running.connect()
        second.sendall(b"second")
        running.until(lambda: running.reasons().get(EndReason.ACCEPT_PAUSED) == 1, "accepting paused")
        assert len(running.sessions()) == 1
        running.until(lambda: '"frontend-full"' in running.log(), "the log says that it is full")
        first.close()
        server.close()
        server = running.setting.origins[0].accept()
        assert server.recv(10) == b"second"
        second.close()
        server.close()
        running.until(lambda: '"frontend-has-room"' in running.log(), "the log says that it has room again")
        assert running.log().count('"frontend-full"') == 1


def test_out_of_descriptors_pauses_and_goes_on():
    """Without descriptors nothing is accepted for a while, one line is logged, the control socket works."""
    with relay(Setting(origins=[Origin()])) as running:
        used = len(os.listdir(f"/proc/{running.worker.pid}/fd"))  # noqa: PTH208  # a directory of the kernel
        _, hard = resource.prlimit(running.worker.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(running.worker.pid, resource.RLIMIT_NOFILE, (used + 3, hard))
        clients = [running.connect() for _ in range(6)]
        running.until(
            lambda: running.reasons().get(EndReason.ACCEPT_PAUSED, 0) >= 3, "accepting paused for some time"
        )
        before = _cpu(running)
        paused = running.reasons()[EndReason.ACCEPT_PAUSED]
        running.until(lambda: running.reasons()[EndReason.ACCEPT_PAUSED] > paused + 3, "more pauses")
        assert _cpu(running) - before < 0.3
        for client in clients:
            reset(client)
        resource.prlimit(running.worker.pid, resource.RLIMIT_NOFILE, (hard, hard))
        running.until(lambda: not running.worker.board().sessions, "sessions are gone")
        served = running.connect()
        served.sendall(b"hello")
        running.until(lambda: _greeted(running), "served again")
        assert running.log().count("accept-paused") == 1


def _greeted(running: Relay) -> bool:
    with running.setting.origins[0].accept() as server:
        server.settimeout(0.5)
        try:
            return server.recv(10) == b"hello"
        except (TimeoutError, ConnectionResetError):
            return False


def _cpu(running: Relay) -> float:
    with open(f"/proc/{running.worker.pid}/stat") as file:  # noqa: PTH123  # a file of the kernel
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_denied_clients_are_refused_before_anything_is_read():
    """A client that is not allowed is reset; its connection reaches no server and is no session."""
    setting = Setting(origins=[Origin()], front={"allow": ("127.0.0.2/32",)}, host="127.0.0.1")
    with relay(setting) as running:
        assert running.refuses()
        running.until(lambda: running.worker.board().frontends[0].denied == 1, "counted")
        allowed = running.connect(source="127.0.0.2")
        allowed.sendall(b"in")
        assert setting.origins[0].accept().recv(10) == b"in"
        running.until(lambda: running.worker.board().frontends[0].total == 1, "one was let in")


def test_mapped_clients_are_looked_up_as_ipv4():
    """A deny list of IPv4 networks holds on a dual-stack listener."""
    setting = Setting(origins=[Origin()], front={"deny": ("127.0.0.0/8",)}, host="::")
    with relay(setting) as running:
        assert running.refuses(host="127.0.0.1")
        allowed = running.connect()
        allowed.sendall(b"in")
        assert setting.origins[0].accept().recv(10) == b"in"


@pytest.mark.promise("docs/faq.md", "`max_age` ends sessions")
@pytest.mark.parametrize(
    ("front", "back", "reason"),
    [
        ({"timeout_client": 0.3}, {}, EndReason.CLIENT_TIMEOUT),
        ({}, {"timeout_server": 0.3}, EndReason.SERVER_TIMEOUT),
        ({"max_age": 0.3}, {}, EndReason.MAX_AGE),
    ],
)
def test_idle_and_old_sessions_end(front: dict[str, object], back: dict[str, object], reason: EndReason):
    """A session of which a side is idle for too long, or that is too old, ends; its client sees a FIN."""
    with relay(Setting(origins=[Origin()], front=front, back=back)) as running:
        client, server = running.pair()
        assert read_all(client) == b""
        running.ended(reason)
        assert is_reset(server)


def test_busy_session_is_not_idle():
    """A session on which one side alone sends outlives both idle times."""
    setting = Setting(origins=[Origin()], front={"timeout_client": 1.5}, back={"timeout_server": 1.5})
    with relay(setting) as running:
        client, server = running.pair()
        for _ in range(30):
            client.sendall(b"x")
            assert server.recv(10) == b"x"
            server.settimeout(0.1)
            with pytest.raises(TimeoutError):
                server.recv(1)
            server.settimeout(10)
        assert len(running.sessions()) == 1


def test_slow_client_is_not_the_servers_fault():
    """While a client does not read, its server waits for it longer than timeout_server."""
    setting = Setting(origins=[Origin()], front={"timeout_client": 1.5}, back={"timeout_server": 0.3})
    with relay(setting) as running:
        client, server = running.pair()
        with pytest.raises(ConnectionResetError):
            server.sendall(bytes(256 << 20))
        running.ended(EndReason.CLIENT_TIMEOUT)
        assert client.fileno() >= 0


def test_silent_server_after_the_clients_end_is_cut():
    """After the client's FIN a server has timeout_server_fin to say something."""
    with relay(Setting(origins=[Origin()], back={"timeout_server_fin": 0.2})) as running:
        client, server = running.pair()
        client.shutdown(socket.SHUT_WR)
        assert read_all(client) == b""
        running.ended(EndReason.SERVER_FIN_TIMEOUT)
        assert server.recv(10) == b""


def test_silent_client_after_the_servers_end_is_cut():
    """After the server's FIN a client has timeout_client_fin to end as well."""
    with relay(Setting(origins=[Origin()], front={"timeout_client_fin": 0.2})) as running:
        client, server = running.pair()
        server.shutdown(socket.SHUT_WR)
        assert read_all(client) == b""
        running.ended(EndReason.CLIENT_FIN_TIMEOUT)
        assert read_all(server) == b""


@pytest.mark.parametrize("change", [{"verdict": HealthVerdict.DOWN}, {"admin": AdminState.MAINT}])
@pytest.mark.parametrize("draining", [False, True])
def test_sessions_of_a_server_that_goes_down_are_closed(draining: bool, change: dict[str, object]):  # noqa: FBT001
    """With on_down: close-sessions they end at once, in a draining worker too; others stay."""
    setting = Setting(origins=[Origin(), Origin()], back={"on_down": OnDown.CLOSE_SESSIONS})
    with relay(setting) as running:
        pairs = {str(position): _open(running, position) for position in (0, 1)}
        if draining:
            running.worker.ask("drain", deadline=4e9)
        records = list(running.records([HealthVerdict.UP], AdminState.READY))
        records[0] = structs.replace(records[0], **change)
        running.worker.publish(records)
        assert is_reset(pairs["0"][0])
        assert is_reset(pairs["0"][1])
        running.ended(EndReason.SERVER_DOWN)
        pairs["1"][0].sendall(b"still here")
        assert pairs["1"][1].recv(100) == b"still here"


@pytest.mark.parametrize("on_up", OnUp)
@pytest.mark.parametrize("draining", [False, True])
def test_sessions_of_backups_when_another_server_comes_up(draining: bool, on_up: OnUp):  # noqa: FBT001
    """With on_up: close-backup-sessions they end at once, in a draining worker too; by default they go on."""
    setting = Setting(origins=[Origin(), Origin()], back={"on_up": on_up}, backups=1)
    with relay(setting) as running:
        running.publish(HealthVerdict.DOWN, HealthVerdict.UP)
        client, server = _next_at(running, 1)
        if draining:
            running.worker.ask("drain", deadline=4e9)
        running.publish(HealthVerdict.UP)
        if on_up is OnUp.CLOSE_BACKUP_SESSIONS:
            assert is_reset(client)
            assert is_reset(server)
            running.until(lambda: running.reasons().get(EndReason.SERVER_UP), "the reason is counted")
            return
        if not draining:
            _next_at(running, 0)
        client.sendall(b"still here")
        assert server.recv(100) == b"still here"


def _next_at(running: Relay, position: int) -> tuple[socket.socket, socket.socket]:
    """Return a session that the server at `position` got, as soon as new ones go there."""
    clients: list[socket.socket] = []
    name = f"s{position}"

    def served() -> int:
        clients.append(running.connect())
        clients[-1].sendall(b"%4d" % len(clients))
        return running.server(name).current

    running.until(served, f"{name} serves")
    last = b"%4d" % len(clients)
    servers = iter(running.setting.origins[position].accept, None)
    return clients[-1], next(each for each in servers if each.recv(4) == last)


def _open(running: Relay, position: int) -> tuple[socket.socket, socket.socket]:
    """Return a session at a given server; turns alternate."""
    client = running.connect()
    client.sendall(b"x")
    server = running.setting.origins[position].accept()
    assert server.recv(1) == b"x"
    return client, server


def test_sessions_are_kept_where_configured():
    """With on_down: keep a server's sessions outlive its verdict, and drain never ends any."""
    with relay(Setting(origins=[Origin()], back={"on_down": OnDown.KEEP})) as running:
        client, server = running.pair()
        running.publish(HealthVerdict.UP, admin=AdminState.DRAIN)
        running.publish(HealthVerdict.DOWN)
        running.until(lambda: running.refuses(timeout=0.5), "no new ones")
        client.sendall(b"still here")
        assert server.recv(100) == b"still here"


def test_server_that_goes_down_while_connecting_is_left():
    """A connect that gets no answer moves to another server as soon as the checks know better."""
    silent, good = Origin(backlog=0), Origin()
    fillers = [socket.socket() for _ in range(4)]
    for filler in fillers:
        filler.setblocking(False)  # noqa: FBT003  # the standard library's signature
        filler.connect_ex(("127.0.0.1", silent.port))
    with relay(Setting(origins=[silent, good], back={"timeout_connect": 60.0})) as running:
        client = running.connect()
        client.sendall(b"hello")
        running.until(lambda: [each["phase"] for each in running.sessions()] == ["connecting"], "connecting")
        running.publish(HealthVerdict.DOWN, HealthVerdict.UP)
        assert good.accept().recv(10) == b"hello"


def test_short_connections_leave_nothing_behind():
    """After 5,000 connections, one in five reset, descriptors and memory are where they were."""
    with relay(Setting(origins=[Origin(backlog=512)])) as running:
        _churn(running, 1000)
        descriptors, memory = _held(running)
        _churn(running, 5000)
        running.until(lambda: _held(running)[0] <= descriptors, "descriptors are where they were")
        assert _held(running)[1] - memory < 1 << 20


def _churn(running: Relay, count: int) -> None:
    for number in range(count):
        client, server = running.pair()
        client.sendall(b"x")
        (reset if number % 5 == 0 else socket.socket.close)(client)
        (reset if number % 7 == 0 else socket.socket.close)(server)
    running.until(lambda: not running.worker.board().sessions, "all sessions ended")


def _held(running: Relay) -> tuple[int, int]:
    pid = running.worker.pid
    running.until(lambda: not running.sessions(), "no session")
    with open(f"/proc/{pid}/statm") as file:  # noqa: PTH123  # a file of the kernel
        pages = int(file.read().split()[1])
    return len(os.listdir(f"/proc/{pid}/fd")), pages * os.sysconf("SC_PAGESIZE")  # noqa: PTH208  # the same
