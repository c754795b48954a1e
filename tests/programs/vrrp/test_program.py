"""The program `vrrp` without any capability: it stays up, says what is missing, and obeys all the same.

So nothing is changed about this machine's interfaces, whoever runs the tests.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from support.machines import nobody
from support.processes.processes import command_line, end, kill, with_environment
from support.processes.waiting import wait_until
from support.run import tools
from support.supervisor.appliance import Values, ask
from support.values import snapshots

from appliance.model.paths import Paths
from appliance.model.snapshot import snapshot as model
from appliance.model.snapshot.virtual_router import Notify, VirtualRouter
from appliance.net.boards.board_reader import BoardReader
from appliance.wire.boards import vrrp_board

pytestmark = [pytest.mark.programs, pytest.mark.needs("setpriv")]

_NOWHERE = "no-such-if0"


def router(name: str = "api", **changes: object) -> VirtualRouter:
    """Return a virtual router on an interface that is not there."""
    return snapshots.virtual_router(name, **{"interface": _NOWHERE, **changes})


class Lone:
    """`vrrp` with a runtime directory of its own and without capabilities."""

    def __init__(self, root: Path) -> None:
        self.paths = Paths(config=root / "appliance.yaml", runtime=root, state=root)
        self.paths.snapshot(0).parent.mkdir()
        self.log_file = root / "log"
        self.processes: list[subprocess.Popen[bytes]] = []

    def propose(self, number: int, *routers: VirtualRouter) -> model.Snapshot:
        """Write a snapshot that may be prepared."""
        made = snapshots.snapshot(number=number, groups=(), pools=(), virtual_routers=routers)
        self.paths.snapshot(number).write_bytes(model.encode(made))
        return made

    def accept(self, number: int, *routers: VirtualRouter) -> None:
        """Write the snapshot that a start obeys."""
        self.paths.accepted.write_bytes(model.encode(self.propose(number, *routers)))

    def start(self) -> "subprocess.Popen[bytes]":
        """Start it."""
        drop = ["setpriv", "--bounding-set=-all"] if tools.is_root() else []
        with self.log_file.open("ab") as log:
            process = subprocess.Popen(
                [*drop, sys.executable, "-m", "appliance.programs.vrrp"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self.paths.environment()},
            )
        self.processes.append(process)
        return process

    def ask(self, command: str, **values: object) -> Values:
        """Ask it."""
        return ask(self.paths.control("vrrp"), command, **values)

    def status(self) -> Values:
        """Return its status, empty while it does not answer."""
        with suppress(OSError, ValueError):
            return self.ask("status")
        return {}

    def routers(self) -> list[Values]:
        """Return the status of its virtual routers."""
        found = self.status().get("routers", [])
        assert isinstance(found, list)
        return found

    def log(self) -> str:
        """Return what it has logged."""
        return self.log_file.read_text()

    def trackers(self) -> list[int]:
        """Return the process ids of its trackers."""
        found = with_environment(f"APPLIANCE_RUNTIME_DIR={self.paths.runtime}")
        return [pid for pid in found if "programs.tracker" in command_line(pid)]


@pytest.fixture
def lone(tmp_path: Path) -> Iterator[Lone]:
    """Return one that is not started yet; all of it is gone at the end."""
    made = Lone(tmp_path)
    yield made
    for process in made.processes:
        end(process)
    for pid in with_environment(f"APPLIANCE_RUNTIME_DIR={made.paths.runtime}"):
        kill(pid)


@pytest.mark.slow("real programs for each situation")
def test_it_says_what_is_missing(lone: Lone):
    """Without capabilities it is up, each virtual IP is in fault, and status and log name what is missing."""
    lone.accept(3, router())
    lone.start()
    status = wait_until(lone.status, what="it answers")
    assert (status["program"], status["snapshot"]) == ("vrrp", 3)
    assert status["missing"] == ["CAP_NET_ADMIN", "CAP_NET_RAW"]
    (shown,) = lone.routers()
    assert (shown["name"], shown["state"], shown["held"]) == ("api", "fault", False)
    assert "CAP_NET_RAW" in str(shown["fault_reasons"])
    assert "capabilities-missing" in lone.log()


def test_it_waits_for_a_snapshot(lone: Lone):
    """Without an accepted snapshot it has no virtual IPs, until one is committed."""
    lone.start()
    status = wait_until(lone.status, what="it answers")
    assert (status["snapshot"], status["routers"]) == (0, [])
    lone.propose(1, router())
    assert lone.ask("prepare", snapshot=1) == {"ok": True, "changed": True, "generation": None}
    assert lone.status()["pending"] == 1
    assert lone.ask("commit", snapshot=1) == {"ok": True, "snapshot": 1}
    assert [each["name"] for each in lone.routers()] == ["api"]
    assert lone.ask("prepare", snapshot=1)["changed"] is False


def test_an_abort_forgets(lone: Lone):
    """An aborted snapshot is not pending any more; aborting another one, or none, is harmless."""
    lone.accept(1)
    lone.start()
    wait_until(lone.status, what="it answers")
    lone.propose(2, router())
    lone.ask("prepare", snapshot=2)
    assert lone.ask("abort", snapshot=5)["ok"] is True
    assert lone.status()["pending"] == 2
    assert lone.ask("abort", snapshot=2)["ok"] is True
    assert lone.status()["pending"] is None
    assert lone.ask("abort", snapshot=2)["ok"] is True


def test_a_snapshot_that_is_not_there_is_refused(lone: Lone):
    """What cannot be read is an answer, and changes nothing."""
    lone.accept(1, router())
    lone.start()
    wait_until(lone.status, what="it answers")
    assert "no snapshot 9" in str(lone.ask("prepare", snapshot=9)["errors"])
    lone.paths.snapshot(9).write_text("{")
    assert lone.ask("prepare", snapshot=9)["ok"] is False
    assert lone.ask("commit", snapshot=9)["ok"] is False
    assert [each["name"] for each in lone.routers()] == ["api"]


@pytest.mark.slow("real programs for each situation")
def test_a_commit_that_is_asked_for_again_has_the_same_end(lone: Lone):
    """Who asks while virtual IPs are still being opened gets his answer when all of them take part."""
    lone.accept(1)
    process = lone.start()
    wait_until(lone.status, what="it answers")
    lone.propose(2, *(router(f"r{each}", router_id=each) for each in range(1, 201)))
    with socket.socket(socket.AF_UNIX) as first, socket.socket(socket.AF_UNIX) as second:
        process.send_signal(signal.SIGSTOP)
        for asker in (first, second):
            asker.settimeout(20)
            asker.connect(str(lone.paths.control("vrrp")))
            asker.sendall(b'{"command": "commit", "snapshot": 2}\n{"command": "status"}\n')
        process.send_signal(signal.SIGCONT)
        for asker in (first, second):
            lines = asker.makefile("rb")
            assert json.loads(lines.readline()) == {"ok": True, "snapshot": 2}
            status = json.loads(lines.readline())
            assert (status["snapshot"], len(status["routers"])) == (2, 200)


def test_a_user_that_does_not_exist_is_refused(lone: Lone):
    """A notify command or a script of nobody that this machine knows is refused before anything changes."""
    lone.accept(1, router())
    lone.start()
    wait_until(lone.status, what="it answers")
    notify = Notify(active=("true",), backup=(), fault=(), stop=(), any=(), user="no-such-user", timeout=1.0)
    lone.propose(2, router(notify=notify))
    assert "no-such-user" in str(lone.ask("prepare", snapshot=2)["errors"])
    script = snapshots.track("own", kind="script", target="true", user="nor-this-one")
    lone.propose(3, router(track=(script,)))
    assert "nor-this-one" in str(lone.ask("prepare", snapshot=3)["errors"])


def test_an_unreadable_accepted_snapshot_is_told(lone: Lone):
    """A damaged accepted snapshot leaves it up and says so."""
    lone.paths.accepted.write_text("{")
    lone.start()
    wait_until(lone.status, what="it answers")
    assert "snapshot-unreadable" in lone.log()


def test_moves_are_refused_in_words(lone: Lone):
    """Nothing is moved or reclaimed that is not configured, or not active."""
    lone.accept(1, router())
    lone.start()
    wait_until(lone.status, what="it answers")
    assert "not active here" in str(lone.ask("move", name="api")["errors"])
    assert "no virtual IP" in str(lone.ask("move", name="other")["errors"])
    assert "no virtual IP" in str(lone.ask("reclaim", name="other")["errors"])
    assert lone.ask("reclaim", name="api") == {"ok": True, "name": "api", "changed": False}


def test_it_is_told_whose_connections_there_are(lone: Lone):
    """Its board says that it waits for that, and not any more once it was told."""
    lone.accept(1, router(informed_within=600.0, informers=("linger",)))
    lone.start()
    wait_until(lone.status, what="it answers")
    board = BoardReader(lone.paths.vrrp_board)

    def waits() -> bool:
        (shown,) = vrrp_board.decode(board.read() or b"").routers
        return shown.uninformed

    assert waits()
    assert "no virtual IP" in str(lone.ask("informed", name="other")["errors"])
    assert lone.ask("informed", name="api") == {"ok": True, "name": "api"}
    wait_until(lambda: not waits(), what="its board says so")


def test_a_second_one_does_not_start(lone: Lone):
    """One runtime directory has one vrrp."""
    lone.accept(1)
    lone.start()
    wait_until(lone.status, what="it answers")
    assert lone.start().wait(20) == 1
    assert "already-running" in lone.log()
    assert lone.status()["ok"] is True


@pytest.mark.needs("setpriv", root=True)
def test_a_foreign_runtime_directory_is_told_in_one_line(lone: Lone):
    """One that may not write there ends with 1 and names path and reason, without a traceback."""
    shutil.chown(lone.paths.runtime, nobody.UID, nobody.UID)
    lone.paths.runtime.chmod(0o755)
    lone.log_file.touch()
    assert lone.start().wait(20) == 1
    (line,) = lone.log().splitlines()
    said = json.loads(line)
    assert said["event"] == "cannot-start"
    assert (said["path"], said["reason"]) == (str(lone.paths.runtime / "vrrp.lock"), "Permission denied")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_when_told(lone: Lone, number: signal.Signals):
    """TERM and INT end it, its tracker ends with it, and its socket is removed."""
    lone.accept(1, router(track=(snapshots.track("port"),)))
    process = lone.start()
    wait_until(lone.trackers, what="the tracker runs")
    wait_until(lone.status, what="it answers")
    process.send_signal(number)
    assert process.wait(20) == 0
    assert not lone.paths.control("vrrp").exists()
    wait_until(lambda: not lone.trackers(), what="the tracker has ended")


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2])
def test_it_goes_on_at_signals_that_keepalived_knows(lone: Lone, number: signal.Signals):
    """Who is used to reload by a signal moves no address; the log says that nothing was done."""
    lone.accept(1)
    process = lone.start()
    wait_until(lone.status, what="it answers")
    process.send_signal(number)
    wait_until(lambda: "signal-ignored" in lone.log(), what="it is told")
    assert number.name in lone.log()
    assert lone.status()["pid"] == process.pid


def test_a_tracker_that_dies_has_a_successor(lone: Lone):
    """A killed tracker is replaced, what it found stays true, and the log says so."""
    lone.accept(1, router(track=(snapshots.track("port", target="127.0.0.1:1", interval=0.1),)))
    lone.start()

    def found() -> bool:
        return any(part["up"] is False for each in lone.routers() for part in each["parts"])

    wait_until(found, what="the tracker has found the port closed")
    (first,) = lone.trackers()
    kill(first)
    second = wait_until(lambda: set(lone.trackers()) - {first}, what="another tracker runs")
    assert len(second) == 1
    assert found()
    assert "tracker-ended" in lone.log()


def test_a_reload_changes_what_is_tracked(lone: Lone):
    """A track that is added by a reload is followed, and one that is taken away is forgotten."""
    lone.accept(1, router())
    lone.start()
    wait_until(lone.status, what="it answers")
    assert lone.trackers() == []
    lone.propose(2, router(track=(snapshots.track("port", target="127.0.0.1:1", weight=-10, interval=0.1),)))
    assert lone.ask("commit", snapshot=2)["ok"] is True
    wait_until(lambda: lone.routers()[0]["priority"] == 90, what="the weight counts")
    lone.propose(3, router())
    assert lone.ask("commit", snapshot=3)["ok"] is True
    assert (lone.routers()[0]["priority"], lone.routers()[0]["parts"]) == (100, [])


def test_its_board_is_written(lone: Lone):
    """The board has every virtual router, and is written again and again."""
    lone.accept(4, router(), router("ingress", router_id=52, addresses=("192.0.2.201/24",)))
    lone.start()
    wait_until(lone.status, what="it answers")
    with BoardReader(lone.paths.vrrp_board) as reader:
        board = vrrp_board.decode(wait_until(reader.read, what="the board is written"))
        before = reader.sequence
        wait_until(lambda: reader.sequence > before, what="it is written again")
    assert [(each.name, each.state) for each in board.routers] == [("api", "fault"), ("ingress", "fault")]
    assert (board.snapshot, board.pid) == (4, lone.status()["pid"])


@pytest.mark.slow("real timers")
@pytest.mark.parametrize("module", ["gevent", "pydantic", "yaml", "click"])
def test_it_does_not_import(module: str):
    """What takes time to import, or another loop, is not loaded by it: a restart has to be quick."""
    code = f"import sys, appliance.programs.vrrp; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
