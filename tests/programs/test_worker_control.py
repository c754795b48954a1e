"""What a worker can be told, by whom, and what it says of itself."""

import json
import os
import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest
from support.network.ports import free_port
from support.programs.lone_worker import lone_worker, up
from support.programs.trace import Origin, Relay, Setting, is_reset, read_all, relay
from support.values.snapshots import bind, frontend, group, pool, server, snapshot

from appliance.model.end_reasons import EndReason
from appliance.model.server_states import HealthVerdict
from appliance.model.snapshot import snapshot as model
from appliance.model.snapshot.keepalive import KeepAlive
from appliance.model.snapshot.pools import OnDown
from appliance.model.snapshot.snapshot import Log
from appliance.model.worker_phases import WorkerPhase
from appliance.net.control.sockets import ControlClient
from appliance.wire.boards.health_board import ServerHealthRecord
from appliance.wire.lines.control import Question

pytestmark = pytest.mark.programs


def control(running: Relay) -> ControlClient:
    """Return a held connection to the worker, as its master has one."""
    return ControlClient(running.worker.paths.worker_control("proxy-api", 1, 0))


def test_status_says_who_and_what():
    """The status names program, generation, index, phase, snapshot, sessions and listeners."""
    with relay(Setting(origins=[Origin()])) as running:
        ends = running.pair()
        status = running.worker.ask("status")
        expected = {
            "ok": True,
            "program": "proxy-api",
            "generation": 1,
            "index": 0,
            "pid": running.worker.pid,
            "workers": 1,
            "phase": "accepting",
            "snapshot": 1,
            "sessions": 1,
            "drain_deadline": 0.0,
            "listeners": [{"frontend": "front", "host": "127.0.0.1", "port": running.setting.port}],
        }
        assert expected.items() <= status.items()
        assert running.worker.board().phase is WorkerPhase.ACCEPTING
        assert len(ends) == 2


def test_accept_again_is_harmless():
    """A repeated command, and one that comes too late, changes nothing."""
    with relay(Setting(origins=[Origin()])) as running:
        running.worker.ask("accept")
        ends = running.pair()
        running.worker.ask("drain", deadline=4e9)
        running.worker.ask("accept")
        assert running.worker.ask("status")["phase"] == "draining"
        assert len(ends) == 2


def test_idle_worker_drains_at_once():
    """Without sessions a draining worker exits with status 0, and its socket and board are gone."""
    with relay(Setting(origins=[Origin()])) as running:
        running.worker.ask("drain", deadline=4e9)
        assert running.worker.process.wait(10) == 0
        paths = running.worker.paths
        assert not paths.worker_control("proxy-api", 1, 0).exists()
        assert not paths.worker_board("proxy-api", 1, 0).exists()


def test_drain_waits_for_sessions_and_refuses_nobody():
    """Draining closes the listener and keeps what is open; the worker exits with the last session."""
    with relay(Setting(origins=[Origin()])) as running:
        client, server = running.pair()
        running.worker.ask("drain", deadline=4e9)
        with pytest.raises(ConnectionRefusedError):
            running.connect()
        assert running.worker.ask("listeners")["listeners"] == []
        client.sendall(b"last words")
        assert server.recv(100) == b"last words"
        client.close()
        server.close()
        assert running.worker.process.wait(10) == 0


def test_drain_deadline_cuts_what_is_left():
    """At the deadline the rest is reset; a second drain may move the deadline."""
    with relay(Setting(origins=[Origin()])) as running:
        client, server = running.pair()
        running.worker.ask("drain", deadline=4e9)
        running.worker.ask("drain", deadline=time.time() + 0.1)
        assert is_reset(client)
        assert is_reset(server)
        assert running.worker.process.wait(10) == 0
        assert "drain-cut" in running.log()


CLOCK = """
import pathlib, time
wall, step = time.time, pathlib.Path({step!r})
time.time = lambda: wall() + 86400.0 * step.exists()
"""
"""A wall clock that is set a day ahead when the file `step` appears."""


def test_wall_clock_that_is_set_cuts_no_drain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The drain time is measured from when it was asked for, also where the clock jumps over the deadline."""
    step = tmp_path / "step"
    (tmp_path / "sitecustomize.py").write_text(CLOCK.format(step=str(step)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    with relay(Setting(origins=[Origin()])) as running:
        client, server = running.pair()
        running.worker.ask("drain", deadline=time.time() + 3600)
        step.touch()
        client.sendall(b"before")
        assert server.recv(100) == b"before"
        running.until(lambda: running.worker.board().written_at > time.time() + 3600, "the clock was set")
        client.sendall(b"after")
        assert server.recv(100) == b"after"
        running.worker.ask("stop")


def test_term_and_stop_end_at_once():
    """SIGTERM and the command `stop` close everything and exit."""
    for end in (lambda worker: worker.process.terminate(), lambda worker: worker.ask("stop")):
        with relay(Setting(origins=[Origin()])) as running:
            client, _ = running.pair()
            end(running.worker)
            assert running.worker.process.wait(10) == 0
            assert is_reset(client)


def test_worker_outlives_its_master():
    """When the connection of its master ends the worker just goes on serving."""
    with relay(Setting(origins=[Origin()])) as running:
        with control(running) as master:
            assert master.ask(Question(command="adopt")).values["phase"] == "accepting"
        ends = running.pair()
        assert running.worker.ask("status")["sessions"] == 1
        assert len(ends) == 2


def test_adopted_worker_logs_to_its_new_master():
    """The descriptor that comes with `adopt` becomes the worker's output."""
    with relay(Setting(origins=[Origin()])) as running:
        output, theirs = os.pipe()
        with control(running) as master:
            master.ask(Question(command="adopt"), descriptors=[theirs])
            os.close(theirs)
            ends = running.pair()
            running.worker.ask("drain", deadline=0.0)
            assert json.loads(os.read(output, 4096))["event"] == "drain-cut"
            os.close(output)
        assert len(ends) == 2


def test_leave_drains_unless_somebody_adopts():
    """A worker whose master has left drains after its patience, but not if another master comes."""
    with relay(Setting(origins=[Origin()])) as running:
        ends = running.pair()
        running.worker.ask("leave", patience=60.0)
        with control(running) as master:
            master.ask(Question(command="adopt"))
        running.worker.ask("leave", patience=0.1)
        running.until(lambda: running.worker.ask("status")["phase"] == "draining", "draining")
        assert (
            running.worker.ask("status")["drain_deadline"] <= time.time() + running.setting.snapshot().drain
        )
        assert len(ends) == 2


def test_adopted_worker_forgets_to_leave():
    """An adoption within the patience takes the leave back."""
    with relay(Setting(origins=[Origin()])) as running, control(running) as master:
        running.worker.ask("leave", patience=0.3)
        master.ask(Question(command="adopt"))
        assert running.setting.origins[0].is_quiet(0.6)
        assert running.worker.ask("status")["phase"] == "accepting"


def test_listeners_are_handed_over():
    """The listening descriptors travel to whoever asks, in the order in which they are named."""
    with relay(Setting(origins=[Origin()])) as running, control(running) as master:
        answer, descriptors = master.ask_for_descriptors(Question(command="listeners"))
        assert answer.values["listeners"] == [
            {"frontend": "front", "host": "127.0.0.1", "port": running.setting.port}
        ]
        with socket.socket(fileno=descriptors[0]) as listener:
            assert listener.getsockname() == ("127.0.0.1", running.setting.port)
            running.worker.ask("stop")
            assert running.worker.process.wait(10) == 0
            client = running.connect()
            assert listener.accept()[1] == client.getsockname()


def test_change_is_applied_live():
    """Other servers, limits and times hold from the next connection on; what is open stays."""
    old, new = Origin(), Origin()
    with relay(Setting(origins=[old])) as running:
        client, server = running.pair(old)
        changed = Setting(origins=[new], port=running.setting.port, changes={"number": 2})
        running.worker.paths.snapshot(2).write_bytes(model.encode(changed.snapshot()))
        assert running.worker.ask("apply", snapshot=2)["ok"]
        assert running.worker.ask("status")["snapshot"] == 2
        other = running.connect()
        other.sendall(b"to the new one")
        assert new.accept().recv(100) == b"to the new one"
        client.sendall(b"still")
        assert server.recv(10) == b"still"


def test_change_that_does_not_exist_changes_nothing():
    """A snapshot that cannot be read is an error in the answer."""
    with relay(Setting(origins=[Origin()])) as running:
        answer = running.worker.ask("apply", snapshot=99)
        assert answer["ok"] is False
        assert running.worker.ask("status")["snapshot"] == 1


REFUSED = KeepAlive(idle=43200.0, interval=10.0, count=3)
"""More than the 32767 seconds that Linux takes for TCP_KEEPIDLE."""


@pytest.mark.parametrize("side", ["front", "back"])
def test_change_whose_options_the_kernel_refuses_changes_nothing(side: str):
    """The answer names frontend or pool, the snapshot in force is the old one, and so are its servers."""
    old, new = Origin(), Origin()
    with relay(Setting(origins=[old])) as running:
        setting = Setting(origins=[new], port=running.setting.port, changes={"number": 2})
        changed = replace(setting, **{side: {"keepalive": REFUSED}})
        running.worker.paths.snapshot(2).write_bytes(model.encode(changed.snapshot()))
        answer = running.worker.ask("apply", snapshot=2)
        assert answer["ok"] is False
        assert {"front": "frontend front", "back": "pool pool"}[side] in str(answer)
        assert running.worker.ask("status")["snapshot"] == running.worker.board().snapshot == 1
        ends = running.pair(old)
        assert len(ends) == 2


@pytest.mark.parametrize("side", ["front", "back"])
def test_option_that_the_kernel_refuses_costs_no_connection(side: str):
    """A worker that starts with one says so once, and serves without it."""
    with relay(replace(Setting(origins=[Origin()]), **{side: {"keepalive": REFUSED}})) as running:
        for _ in range(2):
            client, server = running.pair()
            client.sendall(b"served")
            assert server.recv(100) == b"served"
        assert running.log().count("option-refused") == 1


def test_change_lets_waiters_in():
    """Whoever waits for a full server is served when its limit is lifted."""
    with relay(Setting(origins=[Origin()], each={"max_connections": 1})) as running:
        ends = running.pair()
        waiter = running.connect()
        running.until(lambda: running.server().queued == 1, "one waits")
        lifted = Setting(origins=running.setting.origins, port=running.setting.port, changes={"number": 2})
        running.worker.paths.snapshot(2).write_bytes(model.encode(lifted.snapshot()))
        running.worker.ask("apply", snapshot=2)
        waiter.sendall(b"in")
        assert running.setting.origins[0].accept().recv(10) == b"in"
        assert len(ends) == 2


def _apply(running: Relay, number: int, origins: list[Origin], **changes: object) -> None:
    setting = replace(running.setting, origins=origins, changes={"number": number, **changes})
    running.worker.paths.snapshot(number).write_bytes(model.encode(setting.snapshot()))
    assert running.worker.ask("apply", snapshot=number)["ok"]


def test_sessions_of_a_removed_server_are_still_counted_and_killed():
    """A server without a place in the configuration is on the board until its last session has ended."""
    origins = [Origin(), Origin()]
    with relay(Setting(origins=origins)) as running:
        pairs = [running.pair(origin) for origin in origins]
        _apply(running, 2, origins[:1])
        assert running.server("s1").current == 1
        assert running.worker.ask("kill", server="pool/s1")["killed"] == 1
        assert is_reset(pairs[1][0])
        running.until(lambda: len(running.worker.board().servers) == 1, "s1 is forgotten")


def test_sessions_of_a_server_that_was_put_back_are_closed_when_it_goes_down():
    """A server that was removed and put back is the same for on_down: its sessions end."""
    origins = [Origin(), Origin()]
    with relay(Setting(origins=origins, back={"on_down": OnDown.CLOSE_SESSIONS})) as running:
        pairs = [running.pair(origin) for origin in origins]
        _apply(running, 2, origins[:1])
        _apply(running, 3, origins)
        assert running.server("s1").current == 1
        running.publish(HealthVerdict.UP, HealthVerdict.DOWN)
        assert is_reset(pairs[1][0])
        pairs[0][0].sendall(b"still")
        assert pairs[0][1].recv(10) == b"still"


@pytest.mark.parametrize("kind", ["id", "server", "source"])
def test_sessions_are_killed(kind: str):
    """A session is ended by id, by server or by source; others stay."""
    with relay(Setting(origins=[Origin(), Origin()])) as running:
        client = running.connect(source="127.0.0.9")
        server = running.setting.origins[0].accept()
        other = running.connect()
        kept = running.setting.origins[1].accept()
        running.until(lambda: len(running.sessions()) == 2, "two sessions")
        mine = next(each for each in running.sessions() if str(each["client"]).startswith("127.0.0.9:"))
        assert mine["server"] == "pool/s0"
        value = {"id": mine["id"], "server": "pool/s0", "source": "127.0.0.9"}[kind]
        assert running.worker.ask("kill", **{kind: value})["killed"] == 1
        assert is_reset(client)
        assert is_reset(server)
        running.ended(EndReason.KILLED)
        other.sendall(b"still")
        assert kept.recv(10) == b"still"


@pytest.mark.parametrize("values", [{}, {"source": "nonsense"}])
def test_kill_needs_something_to_go_by(values: dict[str, object]):
    """Without a criterion, or with one that is none, nobody is killed."""
    with relay(Setting(origins=[Origin()])) as running:
        assert running.worker.ask("kill", **values)["ok"] is False


def test_connection_lines_say_how_it_ended():
    """With log.connections each connection is one line with HAProxy's letters, times and bytes."""
    changes = {"log": Log(level="info", format="json", connections=True)}
    with relay(Setting(origins=[Origin()], changes=changes)) as running:
        client, server = running.pair()
        client.sendall(b"12345")
        assert server.recv(10) == b"12345"
        server.sendall(b"123")
        assert client.recv(10) == b"123"
        name = f"127.0.0.1:{client.getsockname()[1]}"
        client.close()
        server.close()
        running.until(lambda: '"connection"' in running.log(), "the line is there")
        line = next(
            each for each in map(json.loads, running.log().splitlines()) if each["event"] == "connection"
        )
        expected = {
            "frontend": "front",
            "client": name,
            "pool": "pool",
            "server": "s0",
            "reason": "completed",
            "termination": "--",
            "bytes_in": 5,
            "bytes_out": 3,
            "retries": 0,
        }
        assert expected.items() <= line.items()
        assert {"queue_s", "connect_s", "total_s"} <= line.keys()


def test_connection_line_of_a_failed_connect_names_the_server():
    """Lines have no level to be filtered by; the server is the last one tried, no retry is queue time."""
    changes = {"log": Log(level="error", format="json", connections=True)}
    gone = Origin()
    gone.close()
    back = {"retries": 1, "timeout_connect": 0.5}
    with relay(Setting(origins=[gone], back=back, changes=changes)) as running:
        assert is_reset(running.connect())
        running.until(lambda: '"connection"' in running.log(), "the line is there")
        (line,) = map(json.loads, running.log().splitlines())
        expected = {
            "event": "connection",
            "program": "proxy-api",
            "generation": 1,
            "server": "s0",
            "reason": "connect-refused",
            "termination": "SC",
            "connect_s": -1.0,
            "retries": 1,
        }
        assert expected.items() <= line.items()
        assert line["queue_s"] == 0.0
        assert line["total_s"] >= 0.5


READY = "/haproxy_ready"


def _endpoint(*, panic: float = 0.0, **changes: object) -> model.Snapshot:
    front = frontend("ready", binds=[bind(free_port())], respond=READY, **changes)
    return snapshot(
        groups=[group("api", frontends=[front])],
        pools=[pool("pool", servers=[server("s0", port=1)], on_down=OnDown.KEEP, panic=panic)],
    )


def _fetch(given: model.Snapshot, request: bytes, *pieces: bytes) -> bytes:
    port = given.groups[0].frontends[0].binds[0].port
    with socket.create_connection(("127.0.0.1", port), timeout=15) as client:
        for piece in (request, *pieces):
            client.sendall(piece)
        return read_all(client)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /haproxy_ready HTTP/1.1\r\nHost: x\r\n\r\n", b"200"),
        (b"HEAD /haproxy_ready HTTP/1.0\r\n\r\n", b"200"),
        (b"GET /haproxy_ready?x HTTP/1.1\r\n\r\n", b"200"),
        (b"GET / HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /haproxy_ready HTTP/1.1\r\n\r\n", b"405"),
        (b"\x16\x03\x01 garbage\r\n\r\n", b"400"),
        (b"x" * 9000, b"400"),
    ],
)
def test_endpoint_answers(request_: bytes, status: bytes):
    """GET and HEAD of the path are 200, everything else says what is wrong with it."""
    given = _endpoint()
    with lone_worker(given):
        answer = _fetch(given, request_)
        assert answer.startswith(b"HTTP/1.1 " + status)
        assert answer.endswith(b"</html>\n") is (
            status in {b"200", b"404"} and not request_.startswith(b"HEAD")
        )


@pytest.mark.parametrize("panic", [0.0, 1.0])
def test_endpoint_needs_its_pool(panic: float):
    """A monitor is 503 as long as its pool has no server up, also where a panic uses those that are down."""
    given = _endpoint(panic=panic, needs="pool")
    with lone_worker(given) as worker:
        running = Relay(worker, Setting())
        question = b"GET /haproxy_ready HTTP/1.1\r\n\r\n"
        assert _fetch(given, question).startswith(b"HTTP/1.1 200")
        worker.publish(_records(given, HealthVerdict.DOWN))
        running.until(lambda: _fetch(given, question).startswith(b"HTTP/1.1 503"), "503")
        running.until(lambda: running.reasons().get(EndReason.RESPONDED, 0) >= 2, "counted")


def _records(given: model.Snapshot, verdict: HealthVerdict) -> list[ServerHealthRecord]:
    return [up(given.pools[0], each, verdict=verdict) for each in given.pools[0].servers]


def test_endpoint_takes_pieces_and_ends_slow_clients():
    """A request may come in pieces; one that never ends is closed at the client's timeout."""
    given = _endpoint(timeout_client=0.3)
    with lone_worker(given) as worker:
        running = Relay(worker, Setting())
        assert _fetch(given, b"GET /hap", b"roxy_ready HTTP/1.1\r\n", b"\r\n").startswith(b"HTTP/1.1 200")
        port = given.groups[0].frontends[0].binds[0].port
        slow = socket.create_connection(("127.0.0.1", port), timeout=15)
        slow.sendall(b"GET")
        running.until(lambda: any(each["phase"] == "responding" for each in running.sessions()), "listed")
        assert is_reset(slow)
        socket.create_connection(("127.0.0.1", port)).close()
        running.until(lambda: running.reasons().get(EndReason.CLIENT_ABORT) == 1, "an abort")
        assert running.reasons()[EndReason.CLIENT_TIMEOUT] == 1
