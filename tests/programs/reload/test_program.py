"""The program `reload` as a process of its own: its socket, its signals, and its queue."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import gevent
import pytest
from gevent import socket
from support.processes.greenlets import until
from support.processes.log_lines import logged
from support.reload.fake_programs import FakeProgram

from appliance.model.paths import Paths
from appliance.net.control.control_client import ControlUnavailable, ask
from appliance.net.files import lock_files, snapshots
from appliance.net.files.atomic_write import write_atomically
from appliance.net.observing.observation import observe
from appliance.net.sources.judging import judge
from appliance.wire.lines.control import Answer, AnswerProblem, Question

pytestmark = pytest.mark.programs

_CONFIG = """\
api:
  frontends:
    kube-api: {{ bind: ["127.0.0.1:9445"], pool: masters }}
pools:
  masters: {{ servers: {{ master-0: {{ address: "127.0.0.1:6443", weight: {weight} }} }} }}
log: {{ level: {level} }}
reload: {{ sockets: {sockets}, watch: {watch} }}
"""


class House:
    """The program under test between a client and two programs that behave."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.paths = Paths(config=root / "c.yaml", runtime=root / "run", state=root / "state")
        self.paths.runtime.mkdir()
        self.paths.state.mkdir()
        self.journal: list[str] = []
        self.write(weight=1)
        first = judge(self.paths, number=1).snapshot
        assert first is not None
        snapshots.accept(self.paths, first)
        self.health = FakeProgram(self.paths, "health", self.journal, obeys=1)
        self.api = FakeProgram(self.paths, "proxy-api", self.journal, obeys=1)
        self.process: subprocess.Popen[bytes] | None = None

    def write(
        self, *, weight: int, level: str = "info", sockets: tuple[str, ...] = (), watch: str = "3s"
    ) -> None:
        """Write the operator's file, whole."""
        text = _CONFIG.format(weight=weight, level=level, sockets=json.dumps(sockets), watch=watch)
        write_atomically(self.paths.config, text.encode())

    def start(self) -> None:
        """Start the program; it is up when it has told everybody what is accepted."""
        with (self.root / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "appliance.programs.reload"],
                env={**os.environ, **self.paths.environment()},
                stdout=log,
                stderr=log,
            )
        until(self._is_up)
        self.journal.clear()

    def _is_up(self) -> bool:
        try:
            said = self.ask("status").values
        except ControlUnavailable:
            return False
        return said["busy"] is False and len(self.journal) >= 4

    def ask(self, command: str) -> Answer:
        """Ask the program over its control socket."""
        return ask(self.paths.control("reload"), Question(command=command))

    def connect(self, path: Path | None = None) -> socket.socket:
        """Return a client of the reload socket."""
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(20)
        client.connect(str(path or self.paths.reload_socket))
        return client

    def events(self, name: str) -> list[dict[str, object]]:
        """Return the logged events of that name."""
        return logged(self.root / "log", name)

    def close(self) -> None:
        """End everything."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.health.stop()
        self.api.stop()


@pytest.fixture
def house() -> Iterator[House]:
    """Give a house in a short path, as sockets need, with the program running."""
    with tempfile.TemporaryDirectory(prefix="lb-") as directory:
        made = House(Path(directory))
        made.start()
        yield made
        made.close()


def answers(client: socket.socket, count: int) -> list[dict[str, object]]:
    """Return that many answers."""
    received = b""
    while received.count(b"\n") < count:
        chunk = client.recv(1 << 16)
        assert chunk, received
        received += chunk
    return [json.loads(line) for line in received.splitlines()]


@pytest.mark.promise("program", "reload")
def test_one_line_makes_the_file_real(house: House):
    """The line `reload` is answered with the new number, what changed, and how long it took."""
    house.write(weight=2)
    with house.connect() as client:
        client.sendall(b"reload\n")
        (answer,) = answers(client, 1)
    assert answer["ok"] is True
    assert answer["generation"] == 2
    assert answer["changed"] == ["pools.masters.servers.master-0"]
    assert isinstance(answer["duration_s"], float)
    assert (house.health.obeys, house.api.obeys) == (2, 2)


@pytest.mark.slow("real programs for each situation")
def test_the_program_log_follows_the_file(house: House):
    """A level that is configured is obeyed from the reload on, by this program too."""
    house.write(weight=1, level="error")
    assert house.ask("reload").ok
    with house.connect() as client:
        client.sendall(b"what\n")
        answers(client, 1)
    assert house.events("reload-line-unknown") == []


def test_reloads_never_overlap_and_none_is_lost(house: House):
    """Many clients at once: each line is answered, and between a prepare and its commit is nothing else."""
    clients = [house.connect() for _ in range(5)]
    for weight in (2, 3, 4, 5):
        house.write(weight=weight)
        for client in clients:
            client.sendall(b"reload\nreload\n")
    got = [answer for client in clients for answer in answers(client, 8)]
    assert len(got) == 40
    assert all(answer["ok"] for answer in got)
    numbers = [int(entry.split()[2]) for entry in house.journal]
    assert numbers == sorted(numbers)
    assert house.journal.count("proxy-api commit 2") == 1
    for client in clients:
        client.close()


@pytest.mark.slow("real programs for each situation")
def test_hang_up_is_a_reload(house: House):
    """SIGHUP does what the line does."""
    house.write(weight=2)
    assert house.process is not None
    house.process.send_signal(signal.SIGHUP)
    until(lambda: house.api.obeys == 2)


def test_a_program_that_goes_away_meanwhile_costs_no_reload(house: House):
    """The line is said once, as OpenShift's monitor does; the program is back soon, and obeys it."""
    house.api.dies_in = "prepare"
    house.write(weight=2, watch="off")
    with house.connect() as client:
        client.sendall(b"reload\n")
        (answer,) = answers(client, 1)
    assert (answer["ok"], answer["again_in"]) == (False, 1.0)
    assert observe(house.paths).answers["reload"].refused
    house.api.dies_in = None
    house.api.start()
    until(lambda: house.api.obeys > 1)
    until(lambda: house.ask("status").values["refused"] == [])
    assert house.health.obeys == house.api.obeys
    assert [each["source"] for each in house.events("reload-started")] == ["socket", "again"]


def test_refusals_have_their_place(house: House):
    """An error is answered with path, line, column and message, and the status remembers it."""
    house.write(weight=-1)
    with house.connect() as client:
        client.sendall(b"reload\n")
        (answer,) = answers(client, 1)
    assert answer["ok"] is False
    (error,) = answer["errors"]
    assert error["line"] == 5
    assert error["path"] == "pools.masters.servers.master-0.weight"
    status = house.ask("status").values
    assert status["snapshot"] == 1
    assert status["reloads"] == {"done": 0, "unchanged": 0, "refused": 1, "refused-again": 0}
    assert status["last"]["ok"] is False
    assert house.events("reload-refused")


@pytest.mark.slow("real programs for each situation")
def test_sockets_follow_the_file(house: House):
    """A path that the file adds takes lines from then on, and is gone with the program."""
    extra = house.root / "haproxy-master.sock"
    house.write(weight=1, sockets=(str(extra),))
    assert house.ask("reload").ok
    until(extra.exists)
    with house.connect(extra) as client:
        client.sendall(b"reload\n")
        assert answers(client, 1)[0]["unchanged"] is True
    assert house.process is not None
    house.process.terminate()
    until(lambda: house.process.poll() is not None)
    assert house.process.returncode == 0
    assert not extra.exists()
    assert not house.paths.reload_socket.exists()


@pytest.mark.slow("real programs for each situation")
def test_a_socket_that_cannot_be_is_told(house: House):
    """The answers warn of it, changed or not, and the status has it, until it can be listened on."""
    extra = house.root / "shared" / "reload.sock"
    house.write(weight=2, sockets=(str(extra),))
    for _ in range(2):
        answer = house.ask("reload")
        assert answer.ok
        assert f"reload socket {extra}: " in str(answer.values["warnings"])
    assert list(observe(house.paths).answers["reload"].socket_failures) == [str(extra)]
    extra.parent.mkdir()
    until(extra.exists)
    until(lambda: not observe(house.paths).answers["reload"].socket_failures)
    assert "warnings" not in house.ask("reload").values


@pytest.mark.slow("real programs for each situation")
def test_killed_in_the_middle_and_back(house: House):
    """Killed between prepare and commit it changes nothing; its successor frees what was prepared."""
    house.api.hangs_in = "prepare"
    house.write(weight=2)
    with house.connect() as client:
        client.sendall(b"reload\n")
        until(lambda: "proxy-api prepare 2" in house.journal and house.health.pending == 2)
        assert house.process is not None
        house.process.kill()
        house.process.wait()
    house.api.hangs_in = None
    house.journal.clear()
    house.start()
    assert house.health.pending is None
    assert (house.health.obeys, house.api.obeys) == (1, 1)
    answer = house.ask("reload")
    assert answer.ok
    assert answer.values["generation"] == 3
    assert (house.health.obeys, house.api.obeys) == (3, 3)


def test_a_refusal_frees_the_queue(house: House):
    """After a refused reload the next one, already waiting, is done."""
    house.api.refuses = AnswerProblem(message="no")
    house.write(weight=2)
    with house.connect() as client:
        client.sendall(b"reload\nreload\n")
        assert [each["ok"] for each in answers(client, 2)] == [False, False]


def test_without_an_accepted_snapshot_it_says_so(tmp_path: Path):
    """Started by hand in an empty directory it ends with its reason."""
    paths = Paths(config=tmp_path / "c.yaml", runtime=tmp_path, state=tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "appliance.programs.reload"],
        env={**os.environ, **paths.environment()},
        stderr=subprocess.PIPE,
        check=False,
    )
    assert done.returncode == 1
    assert b"appliance run" in done.stderr


def test_what_was_not_obeyed_is_told_until_it_is(house: House):
    """A program fails after it agreed: the answer is no, and status tells that until the program obeys."""
    house.api.disobeys = AnswerProblem(message="worker 1.0 continues with snapshot 1")
    house.write(weight=2)
    with house.connect() as client:
        client.sendall(b"reload\n")
        assert answers(client, 1)[0]["ok"] is False
    assert "continues with snapshot 1" in str(house.ask("status").values["refused"])
    house.health.obeys = 1  # led to what is accepted, and so the programs have been asked
    until(lambda: house.health.obeys == 2)
    assert "continues with snapshot 1" in str(house.ask("status").values["refused"])
    house.api.disobeys = None
    until(lambda: house.ask("status").values["refused"] == [])
    assert len(house.events("reload-completed")) == 1


def test_what_an_earlier_one_accepts_at_its_end_is_obeyed():
    """A killed supervisord leaves one in the middle of a change: the next one waits, and obeys that."""
    with tempfile.TemporaryDirectory(prefix="lb-") as directory:
        made = House(Path(directory))
        held = lock_files.hold(made.paths.runtime / "reload.lock")
        assert held is not None
        starting = gevent.spawn(made.start)
        until(lambda: (made.root / "log").exists() and made.events("predecessor-awaited"))
        made.write(weight=2)
        second = judge(made.paths, number=2).snapshot
        assert second is not None
        snapshots.accept(made.paths, second)
        snapshots.propose(made.paths, second)
        os.close(held)
        starting.get(timeout=20)
        assert made.ask("status").values["snapshot"] == 2
        made.close()
