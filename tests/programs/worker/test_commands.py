"""What a worker can be told over its control socket, by whom, and what it answers."""

import json
import os
import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest
from support.worker.trace import Origin, Relay, Setting, is_reset, relay

from appliance.model.snapshot import snapshot as model
from appliance.model.snapshot.frontends import KeepAlive
from appliance.model.worker_phases import WorkerPhase
from appliance.net.control.control_client import ControlClient
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


@pytest.mark.promise("kernel", "descriptors over sockets (SCM_RIGHTS)")
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
