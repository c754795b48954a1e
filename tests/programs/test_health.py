"""The program `health` as operators and workers meet it: its board, its socket, its log, and kill -9."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import pytest
from support.network.ports import free_port
from support.peers.backend import Backend
from support.peers.hostile import SECURE, hostile
from support.peers.nginx import nginx
from support.processes.processes import end, kill
from support.processes.waiting import wait_until
from support.values import certificates, snapshots

from appliance.model.check_results import CheckResult
from appliance.model.paths import Paths
from appliance.model.server_states import AdminState, HealthVerdict
from appliance.model.snapshot.pools import Check, CheckInit, Pool, Server
from appliance.model.snapshot.snapshot import Snapshot, encode
from appliance.net.boards.boards import BoardError, BoardReader
from appliance.net.control.sockets import ControlUnavailable, ask
from appliance.wire.boards.health_board import HealthBoard, ServerHealthRecord, decode
from appliance.wire.lines import connect_failure as doubts
from appliance.wire.lines.control import Answer, Question

pytestmark = pytest.mark.programs

QUICK = snapshots.check(
    "http", path="/readyz", interval=0.1, fast_interval=0.05, down_interval=0.1, timeout=2.0, rise=2, fall=2
)
COMMAND = f"{sys.executable} -m appliance.programs.health"
SLOW = replace(QUICK, interval=60.0, fast_interval=60.0, down_interval=60.0)


class Health:
    """A runtime directory with a health program in it, which can be killed and started again."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="lb-health-")
        root = Path(self._directory.name)
        self.paths = Paths(config=root / "appliance.yaml", runtime=root / "run", state=root / "state")
        (self.paths.runtime / "snapshots").mkdir(parents=True)
        self._log = root / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self.command = COMMAND.split()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            end(self._process)
        self._directory.cleanup()

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The program started last."""
        assert self._process is not None
        return self._process

    def accept(self, snapshot: Snapshot) -> None:
        """Make a snapshot the one that a starting program obeys."""
        self.paths.accepted.write_bytes(encode(snapshot))

    def start(self) -> None:
        """Start the program and wait until it answers."""
        self._process = self.spawn()
        wait_until(self._answers, what="health answers")

    def spawn(self) -> subprocess.Popen[bytes]:
        """Start the program."""
        with self._log.open("ab") as log:
            return subprocess.Popen(
                self.command,
                stdout=log,
                stderr=log,
                env={**os.environ, **self.paths.environment()},
            )

    def kill(self) -> None:
        """Kill the program with -9."""
        kill(self.process.pid)
        self.process.wait()

    def ask(self, command: str, **values: object) -> Answer:
        """Ask the program over its control socket."""
        return ask(self.paths.control("health"), Question(command=command, values=values))

    def propose(self, snapshot: Snapshot) -> Answer:
        """Write a snapshot and have it prepared."""
        self.paths.snapshot(snapshot.number).write_bytes(encode(snapshot))
        return self.ask("prepare", snapshot=snapshot.number)

    def apply(self, snapshot: Snapshot) -> None:
        """Prepare and commit a snapshot."""
        assert self.propose(snapshot).ok
        assert self.ask("commit", snapshot=snapshot.number).ok

    def board(self) -> HealthBoard | None:
        """Return the board, None before the first one."""
        with contextlib.suppress(BoardError), BoardReader(self.paths.health_board) as board:
            payload = board.read()
            return decode(payload) if payload else None
        return None

    def server(self, name: str) -> ServerHealthRecord | None:
        """Return what the board says of a server, None when it says nothing."""
        board = self.board()
        return next((each for each in board.servers if each.server == name), None) if board else None

    def wait_for(self, name: str, verdict: HealthVerdict, *, by: int = 0) -> ServerHealthRecord:
        """Return the record of a server as soon as it has this verdict, and was seen after `by` failures."""

        def wanted() -> ServerHealthRecord | None:
            record = self.server(name)
            return record if record and record.verdict is verdict and record.failed >= by else None

        return wait_until(wanted, what=f"{name} is {verdict.name}")

    def events(self, *names: str) -> list[dict[str, object]]:
        """Return the log lines of these events."""
        lines = [json.loads(line) for line in self._log.read_text().splitlines() if line.startswith("{")]
        return [line for line in lines if line["event"] in names]

    def log(self) -> str:
        """Return everything that the program said."""
        return self._log.read_text()

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.log()
        with contextlib.suppress(ControlUnavailable):
            return self.ask("status").ok
        return False


def of(
    servers: Sequence[Server],
    *,
    number: int = 1,
    name: str = "masters",
    level: str = "info",
    **changes: object,
) -> Snapshot:
    """Return a snapshot of one pool."""
    pool: Pool = snapshots.pool(name, servers=servers, **changes)
    log = replace(snapshots.snapshot().log, level=level)
    return snapshots.snapshot(number=number, pools=[pool], log=log)


def server(name: str, backend: Backend | int, check: Check | None = QUICK, **changes: object) -> Server:
    """Return a server with a check."""
    port = backend if isinstance(backend, int) else backend.port
    return snapshots.server(name, port=port, check=check, **changes)


@pytest.fixture
def health() -> Iterator[Health]:
    """Give a runtime directory; at the end the program is ended."""
    with Health() as made:
        yield made


@pytest.fixture
def backend() -> Iterator[Backend]:
    """Give a server whose /readyz can be steered."""
    with Backend("master-0") as made:
        yield made


def test_servers_are_known_soon_after_the_start(health: Health, backend: Backend):
    """One check decides on each: up with the status and address, down with the reason."""
    dead = free_port()
    health.accept(
        of([server("good", backend), server("dead", dead), server("free", dead, check=None)], number=7)
    )
    health.start()
    good, gone = health.wait_for("good", HealthVerdict.UP), health.wait_for("dead", HealthVerdict.DOWN)
    assert (good.result, good.status, good.host, good.port) == (
        CheckResult.L7OK,
        200,
        "127.0.0.1",
        backend.port,
    )
    assert (gone.result, gone.detail) == (CheckResult.L4CON, "connection refused")
    assert health.wait_for("free", HealthVerdict.UP).result is CheckResult.UNCHECKED
    board = health.board()
    assert board is not None
    assert (board.snapshot, board.pid) == (7, health.process.pid)
    status = health.ask("status").values
    assert (status["program"], status["pid"], status["snapshot"]) == ("health", health.process.pid, 7)
    assert status["servers"] == {"up": 2, "down": 1, "drain": 0, "maint": 0, "checking": 0}


def test_a_change_of_state_is_logged_once_with_its_result(health: Health, backend: Backend):
    """A /readyz that turns 500 and back gives two lines, each with the result that caused it."""
    health.accept(of([server("master-0", backend), server("other", backend, check=None)]))
    health.start()
    health.wait_for("master-0", HealthVerdict.UP)
    backend.ready(500)
    down = health.wait_for("master-0", HealthVerdict.DOWN)
    assert (down.result, down.status, down.streak >= 2) == (CheckResult.L7STS, 500, True)
    backend.ready(200)
    health.wait_for("master-0", HealthVerdict.UP)
    events = health.events("server-up", "server-down")
    assert [event["event"] for event in events] == ["server-up", "server-down", "server-up"]
    facts = events[1]
    assert (facts["pool"], facts["server"], facts["result"], facts["status"]) == (
        "masters",
        "master-0",
        "L7STS",
        500,
    )
    assert (facts["level"], facts["streak"], facts["up"], facts["servers"]) == ("warning", 2, 1, 2)
    assert facts["program"] == "health"
    assert "duration" in facts
    assert "detail" in facts
    assert health.events("check") == []


def test_debug_shows_every_check(health: Health, backend: Backend):
    """At level debug a check that changes nothing has its line too."""
    health.accept(of([server("master-0", backend)], level="debug"))
    health.start()
    wait_until(lambda: len(health.events("check")) > 2, what="checks are logged")
    assert health.events("check")[0]["result"] == "L7OK"


def test_only_changes_count_as_changes(health: Health, backend: Backend):
    """Fresh results move the board's sequence, and `changes` only with a verdict."""
    health.accept(of([server("master-0", backend)]))
    health.start()
    health.wait_for("master-0", HealthVerdict.UP)
    with BoardReader(health.paths.health_board) as board:
        changes, sequence = board.changes, board.sequence
        wait_until(lambda: board.sequence > sequence + 2, what="fresh results are published")
        assert board.changes == changes
        backend.ready(500)
        wait_until(lambda: board.changes == changes + 1, what="the verdict is published")


def test_slow_start_ramps_the_weight_on_the_board(health: Health, backend: Backend):
    """A server that comes back shows a small weight that grows to its own."""
    backend.ready(500)
    health.accept(of([server("master-0", backend, weight=100)], slow_start=1.0))
    health.start()
    health.wait_for("master-0", HealthVerdict.DOWN)
    backend.ready(200)
    first = health.wait_for("master-0", HealthVerdict.UP).weight
    assert 0 < first < 100
    weights = [first]

    def whole() -> bool:
        record = health.server("master-0")
        weights.append(record.weight if record else 0.0)
        return weights[-1] == 100.0

    wait_until(whole, what="the weight is whole")
    assert weights == sorted(weights)
    assert len(set(weights)) > 3


def test_slow_start_ramps_after_maint(health: Health):
    """An operator who gives a server back sees a small weight at first."""
    health.accept(of([server("master-0", 1, check=None, weight=100)], slow_start=60.0))
    health.start()
    assert health.wait_for("master-0", HealthVerdict.UP).weight == 100.0
    for state in ("maint", "ready"):
        assert health.ask("set-state", pool="masters", server="master-0", state=state).ok
    wait_until(lambda: _admins(health) == {"master-0": AdminState.READY}, what="the board says ready")
    wait_until(lambda: _weight(health, "master-0") < 100.0, what="the weight is small")


def test_a_killed_program_goes_on_where_it_was(health: Health, backend: Backend):
    """After kill -9 no verdict, no since and no counter is lost, and nothing is logged as a change."""
    dead = free_port()
    health.accept(of([server("good", backend, SLOW), server("dead", dead, SLOW)]))
    health.start()
    before = [health.wait_for("good", HealthVerdict.UP), health.wait_for("dead", HealthVerdict.DOWN)]
    logged = len(health.events("server-up", "server-down"))
    health.kill()
    assert [health.server("good"), health.server("dead")] == before
    health.start()
    checked = health.wait_for("dead", HealthVerdict.DOWN, by=2)
    assert (checked.streak, checked.since) == (2, pytest.approx(before[1].since, abs=0.5))
    again = health.wait_for("good", HealthVerdict.UP)
    assert again.since == pytest.approx(before[0].since, abs=0.5)
    assert len(health.events("server-up", "server-down")) == logged


def test_a_restart_in_the_middle_of_a_fall_counts_on(health: Health, backend: Backend):
    """The streak is on the board: one failure before and one after a restart are two in a row."""
    health.accept(of([server("master-0", backend, replace(SLOW, interval=0.1))]))
    health.start()
    health.wait_for("master-0", HealthVerdict.UP)
    backend.ready(500)
    health.wait_for("master-0", HealthVerdict.UP, by=1)
    health.kill()
    health.start()
    assert health.wait_for("master-0", HealthVerdict.DOWN).streak == 2


def test_operator_states_act_at_once_and_are_kept(health: Health, backend: Backend):
    """Drain, maint and ready are on the board, in the log, and there again after kill -9."""
    health.accept(of([server("a", backend), server("b", backend)]))
    health.start()
    health.wait_for("a", HealthVerdict.UP)
    drained = health.ask("set-state", pool="masters", server="a", state="drain")
    assert drained.values == {"pool": "masters", "server": "a", "state": "drain", "changed": True}
    assert health.ask("set-state", pool="masters", server="a", state="drain").values["changed"] is False
    assert health.ask("set-state", pool="masters", server="b", state="maint").ok
    wait_until(
        lambda: _admins(health) == {"a": AdminState.DRAIN, "b": AdminState.MAINT}, what="the board says so"
    )
    health.kill()
    health.start()
    assert _admins(health) == {"a": AdminState.DRAIN, "b": AdminState.MAINT}
    kept = {event["server"]: event["state"] for event in health.events("operator-state-kept")}
    assert kept == {"a": "drain", "b": "maint"}
    assert health.ask("set-state", pool="masters", server="b", state="ready").ok
    health.wait_for("b", HealthVerdict.UP)
    assert [event["event"] for event in health.events("server-drain", "server-maint", "server-ready")] == [
        "server-drain",
        "server-maint",
        "server-ready",
    ]


def test_a_server_in_maint_is_not_checked(health: Health):
    """Checks end with maint; a server that died meanwhile is found down before it gets traffic."""
    with Backend("mortal") as mortal:
        health.accept(of([server("master-0", mortal)]))
        health.start()
        health.wait_for("master-0", HealthVerdict.UP)
        assert health.ask("set-state", pool="masters", server="master-0", state="maint").ok
        mortal.stop()
        board = health.board()
        assert board is not None
        assert health.ask("set-state", pool="masters", server="master-0", state="ready").ok
        record = health.wait_for("master-0", HealthVerdict.DOWN)
        assert (record.failed, record.result) == (1, CheckResult.L4CON)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"pool": "master", "server": "a", "state": "drain"}, "unknown pool 'master'; known: masters"),
        (
            {"pool": "masters", "server": "c", "state": "drain"},
            "unknown server masters/c; known in masters: a, b",
        ),
        (
            {"pool": "masters", "server": "a", "state": "off"},
            "unknown state 'off'; known: ready, drain, maint",
        ),
        ({"pool": "masters", "server": "a"}, "set-state: state: Expected `str`, got `null`"),
    ],
)
def test_a_mistyped_command_says_what_there_is(health: Health, values: dict[str, object], message: str):
    """Unknown pools, servers and states are answered with the known ones."""
    health.accept(of([server("a", 1, None), server("b", 1, None)]))
    health.start()
    answer = health.ask("set-state", **values)
    assert [problem.message for problem in answer.errors] == [message]


def test_a_new_configuration_keeps_what_stays(health: Health, backend: Backend):
    """Servers that stay keep their state; others appear, disappear, or begin anew at another address."""
    with Backend("another") as another:
        first = of([server("stays", backend, SLOW), server("goes", backend), server("moves", backend, SLOW)])
        health.accept(first)
        health.start()
        before = health.wait_for("stays", HealthVerdict.UP)
        moved = health.wait_for("moves", HealthVerdict.UP)
        second = of(
            [server("stays", backend, SLOW), server("moves", another, SLOW), server("comes", another)],
            number=2,
        )
        assert health.propose(second).values == {"changed": True, "generation": None}
        assert health.server("comes") is None
        assert health.ask("commit", snapshot=2).ok
        health.wait_for("comes", HealthVerdict.UP)
        assert health.server("goes") is None
        again = health.wait_for("moves", HealthVerdict.UP)
        assert (again.port, again.since > moved.since) == (another.port, True)
        stays = health.server("stays")
        assert stays is not None
        assert (stays.checked_at, stays.streak) == (pytest.approx(before.checked_at, abs=0.5), 1)
        assert health.propose(replace(second, number=3)).values["changed"] is False
        assert health.ask("commit", snapshot=3).ok
        wait_until(lambda: (board := health.board()) and board.snapshot == 3, what="the board says 3")


def test_commands_can_be_repeated(health: Health):
    """A second prepare, commit or abort of the same snapshot is harmless, and an aborted one is forgotten."""
    health.start()
    snapshot = of([server("a", 1, None)], number=5)
    assert health.propose(snapshot).ok
    assert health.propose(snapshot).ok
    assert health.ask("status").values["pending"] == 5
    assert health.ask("abort", snapshot=4).ok
    assert health.ask("status").values["pending"] == 5
    assert [health.ask("abort", snapshot=5).ok for _ in range(2)] == [True, True]
    assert health.ask("status").values["pending"] is None
    assert [health.ask("commit", snapshot=5).ok for _ in range(2)] == [True, True]
    assert health.ask("status").values["snapshot"] == 5
    assert health.wait_for("a", HealthVerdict.UP)


def test_what_cannot_be_used_is_refused_in_prepare(health: Health, tmp_path: Path):
    """A snapshot that is not there or a CA file without a certificate is an error before anything changes."""
    health.accept(of([server("a", 1, None)]))
    health.start()
    assert health.ask("prepare", snapshot=9).errors[0].message == "no snapshot 9"
    health.paths.snapshot(9).write_bytes(b"{}")
    assert "9.json" in health.ask("prepare", snapshot=9).errors[0].message
    check = snapshots.check("https", verify=str(tmp_path / "ca.pem"))
    refused = health.propose(of([server("a", 1, check)], number=2))
    assert [problem.message for problem in refused.errors] == [
        f"masters/a: CA file {tmp_path / 'ca.pem'}: No such file or directory"
    ]
    assert health.ask("status").values["snapshot"] == 1


def test_a_broken_start_is_a_start(health: Health):
    """With an unreadable snapshot, board and operator file it says so and waits for a configuration."""
    health.accept(of([]))
    health.paths.accepted.write_bytes(b"{")
    health.paths.health_board.write_bytes(b"nonsense")
    health.paths.state.mkdir()
    health.paths.operator_states.write_bytes(b"{")
    health.start()
    names = ["board-unreadable", "operator-states-unreadable", "snapshot-unreadable"]
    assert [event["event"] for event in health.events(*names)] == names
    health.apply(of([server("a", 1, None)]))
    assert health.wait_for("a", HealthVerdict.UP)


def test_operator_states_come_from_the_board_when_their_file_is_broken(health: Health):
    """A server in maint is not given traffic because a file was damaged."""
    health.accept(of([server("a", 1, None)]))
    health.start()
    health.ask("set-state", pool="masters", server="a", state="maint")
    wait_until(lambda: _admins(health) == {"a": AdminState.MAINT}, what="the board says so")
    health.kill()
    health.paths.operator_states.write_bytes(b"{")
    health.start()
    assert _admins(health) == {"a": AdminState.MAINT}


def test_a_name_is_resolved_for_the_workers(health: Health, backend: Backend):
    """A server with a name is checked at the address it stands for, and the board tells that address."""
    dead = snapshots.server("nowhere", host="nowhere.invalid", port=1, check=QUICK)
    health.accept(of([server("master-0", backend, host="localhost"), dead]))
    health.start()
    assert health.wait_for("master-0", HealthVerdict.UP).host in {"127.0.0.1", "::1"}
    nowhere = health.wait_for("nowhere", HealthVerdict.DOWN)
    assert nowhere.host == ""
    assert nowhere.detail.startswith("name not resolved")
    unresolved = health.ask("status").values["unresolved"]
    assert isinstance(unresolved, dict)
    assert list(unresolved) == ["nowhere.invalid"]


@pytest.mark.skipif(os.geteuid() != 0, reason="an own hosts file needs root")
def test_a_restart_moves_no_server_of_several_addresses(health: Health, backend: Backend, tmp_path: Path):
    """After kill -9 a name's address stays, though another one is the resolver's first answer by now."""
    hosts = tmp_path / "hosts"
    health.command = ["unshare", "--mount", "sh", "-c", f"mount --bind {hosts} /etc/hosts && exec {COMMAND}"]
    check = replace(SLOW, address="127.0.0.1")
    health.accept(of([server("master-0", backend, check, host="many.test")]))
    hosts.write_text("127.0.0.2 many.test\n127.0.0.3 many.test\n")
    health.start()
    first = health.wait_for("master-0", HealthVerdict.UP)
    health.kill()
    hosts.write_text("127.0.0.3 many.test\n127.0.0.2 many.test\n")
    health.start()
    wait_until(lambda: _newer(health, "master-0", first.checked_at), what="it is checked again")
    after = health.wait_for("master-0", HealthVerdict.UP)
    assert (first.host, after.host) == ("127.0.0.2", "127.0.0.2")
    assert after.since == pytest.approx(first.since, abs=0.5)
    assert len(health.events("server-address", "server-up")) == 2


def test_a_new_server_of_a_known_name_has_its_address(health: Health, backend: Backend):
    """A pool that a reload adds is told the address that another pool's server of that name has."""
    check = replace(QUICK, address="127.0.0.1")  # localhost may be ::1
    first = server("a", backend, check, host="localhost")
    health.accept(of([first]))
    health.start()
    wait_until(lambda: getattr(health.server("a"), "host", ""), what="the name is resolved")
    health.apply(of([first, server("b", backend, check, host="localhost")], number=2))
    health.wait_for("b", HealthVerdict.UP)
    a = health.server("a")
    assert a is not None
    wait_until(lambda: getattr(health.server("b"), "host", "") == a.host, what="b has the address of a")


def test_checks_may_go_elsewhere_than_sessions(health: Health, backend: Backend):
    """With `port` and `address` of the check, the server's own port is not touched."""
    check = replace(QUICK, port=backend.port, address="127.0.0.2")
    health.accept(of([server("router", free_port(), check)]))
    health.start()
    assert health.wait_for("router", HealthVerdict.UP).host == "127.0.0.1"


@pytest.mark.needs("nginx")
def test_masters_with_tls_are_checked_as_openshift_does(health: Health, tmp_path: Path):
    """An https check of nginx passes unverified and with its CA, and fails with another one."""
    ours = certificates.issue(tmp_path, "localhost")
    (tmp_path / "other").mkdir()
    others = certificates.issue(tmp_path / "other", "localhost")
    with nginx(certificates=ours) as master:
        https = replace(QUICK, type=snapshots.check("https").type)
        health.accept(
            of(
                [
                    server("unverified", master.port, https),
                    server("ours", master.port, replace(https, verify=str(ours.authority), sni="localhost")),
                    server("others", master.port, replace(https, verify=str(others.authority))),
                ]
            )
        )
        health.start()
        assert health.wait_for("unverified", HealthVerdict.UP).result is CheckResult.L7OK
        assert health.wait_for("ours", HealthVerdict.UP).result is CheckResult.L7OK
        assert health.wait_for("others", HealthVerdict.DOWN).result is CheckResult.L6RSP


@pytest.mark.needs("nginx")
def test_a_ca_file_that_is_being_replaced_takes_no_server_down(health: Health, tmp_path: Path):
    """While the file is gone its last content is used; the log says so once, and when it is back."""
    issued = certificates.issue(tmp_path, "localhost")
    content = issued.authority.read_bytes()
    with nginx(certificates=issued) as master:
        https = replace(QUICK, type=snapshots.check("https").type, verify=str(issued.authority), fall=1)
        health.accept(of([server(f"master-{index}", master.port, https) for index in range(3)]))
        health.start()
        wait_until(lambda: _all_checked(health, 3), what="all are checked")
        issued.authority.unlink()
        wait_until(lambda: health.events("ca-file-kept"), what="the log says so")
        since = time.time()
        wait_until(lambda: _all_checked(health, 3, since=since), what="all are checked without the file")
        assert not health.propose(of([server("a", master.port, https)], number=2)).ok
        issued.authority.write_bytes(content)
        wait_until(lambda: health.events("ca-file-readable"), what="the log says that it is back")
        assert health.events("server-down", "check-impossible") == []
        assert len(health.events("ca-file-kept")) == 1


def test_a_check_without_its_ca_file_is_no_verdict(health: Health, backend: Backend, tmp_path: Path):
    """A CA file that is missing from the start leaves servers as they are, and is logged once."""
    check = replace(QUICK, type=snapshots.check("https").type, verify=str(tmp_path / "ca.pem"))
    health.accept(of([server("a", backend, check), server("b", backend, check), server("c", backend)]))
    health.start()
    wait_until(lambda: health.events("check-impossible"), what="the log says so")
    sure = health.wait_for("c", HealthVerdict.UP)
    wait_until(lambda: _newer(health, "c", sure.checked_at + 0.5), what="some rounds of checks")
    assert [health.wait_for(name, HealthVerdict.UNKNOWN).failed for name in "ab"] == [0, 0]
    assert len(health.events("check-impossible")) == 1


def test_first_checks_of_many_servers_are_spread(health: Health, backend: Backend):
    """Three hundred servers are not asked in one instant, but over a second or more."""
    health.accept(of([server(f"server-{index}", backend, SLOW) for index in range(300)]))
    health.start()
    wait_until(lambda: _all_checked(health, 300), what="all are checked")
    board = health.board()
    assert board is not None
    moments = [each.checked_at for each in board.servers]
    assert max(moments) - min(moments) > 0.5


@pytest.mark.needs("nginx")
def test_a_program_that_was_stopped_blames_no_server(health: Health, tmp_path: Path):
    """Checks that ran out of time because this machine was busy have not failed."""
    with nginx(certificates=certificates.issue(tmp_path, "localhost")) as master:
        https = replace(QUICK, type=snapshots.check("https").type, timeout=2.0, fall=1)
        health.accept(
            of([server(f"master-{index}", master.port, https) for index in range(40)], level="debug")
        )
        health.start()
        wait_until(lambda: _all_checked(health, 40), what="all are checked")
        health.process.send_signal(signal.SIGSTOP)
        time.sleep(2.5)  # longer than a check may take: that is the case
        health.process.send_signal(signal.SIGCONT)
        since = time.time()
        wait_until(lambda: _all_checked(health, 40, since=since), what="all are checked anew")
        failed = [event for event in health.events("check", "server-down") if event["result"] != "L7OK"]
        assert failed == []


def test_presumed_states_are_presumed_until_the_first_check(health: Health, backend: Backend):
    """With `init` up or down there is a verdict before the first check, which alone corrects it."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        late = replace(SLOW, timeout=60.0, port=silent.getsockname()[1])
        health.accept(
            of(
                [
                    server("presumed-up", 1, replace(late, init=CheckInit.UP)),
                    server("presumed-down", 1, replace(late, init=CheckInit.DOWN)),
                    server("up", free_port(), replace(SLOW, init=CheckInit.UP)),
                    server("down", backend, replace(SLOW, init=CheckInit.DOWN)),
                ]
            )
        )
        health.start()
        assert health.wait_for("up", HealthVerdict.DOWN, by=1).streak == 1
        assert health.wait_for("down", HealthVerdict.UP).streak == 1
        assert health.wait_for("presumed-up", HealthVerdict.UP).result is CheckResult.UNCHECKED
        assert health.wait_for("presumed-down", HealthVerdict.DOWN).result is CheckResult.UNCHECKED
        # While the silent one is still there: its end would be the answer to a check.
        said = health.events("server-up", "server-down")
    events = sorted((event["server"], event["event"]) for event in said)
    assert events == [("down", "server-up"), ("up", "server-down")]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_end_is_clean(health: Health, backend: Backend, number: signal.Signals):
    """TERM and INT end it with 0 and without its socket; the board stays for the workers."""
    health.accept(of([server("master-0", backend), server("nowhere", 1, host="nowhere.invalid")]))
    health.start()
    before = health.wait_for("master-0", HealthVerdict.UP)
    health.process.send_signal(number)
    assert health.process.wait(10) == 0
    assert not health.paths.control("health").exists()
    assert health.wait_for("master-0", HealthVerdict.UP).since == pytest.approx(before.since, abs=0.5)
    assert "Traceback" not in health.log()


def test_a_second_program_leaves_the_first_alone(health: Health, backend: Backend):
    """A board has one writer: another health in the same directory says so and ends."""
    health.accept(of([server("master-0", backend)]))
    health.start()
    assert health.spawn().wait(15) == 1
    assert [event["event"] for event in health.events("already-running")] == ["already-running"]
    assert health.ask("status").values["pid"] == health.process.pid


def test_without_its_board_the_program_ends(health: Health, backend: Backend):
    """A bug in publishing ends it with a traceback and 1: the next one goes on from the board."""
    broken = (
        "import sys; from appliance.programs import health; health.record = None; sys.exit(health.main())"
    )
    health.command = [sys.executable, "-c", broken]
    health.accept(of([server("master-0", backend)]))
    assert health.spawn().wait(15) == 1
    assert [event["event"] for event in health.events("publishing-crashed")] == ["publishing-crashed"]


def _weight(health: Health, name: str) -> float:
    record = health.server(name)
    return record.weight if record else 0.0


def _admins(health: Health) -> dict[str, AdminState]:
    board = health.board()
    return {each.server: each.admin for each in board.servers} if board else {}


def _newer(health: Health, name: str, than: float) -> bool:
    record = health.server(name)
    return record is not None and record.checked_at > than


def _all_checked(health: Health, count: int, *, since: float = 0.0) -> bool:
    board = health.board()
    return board is not None and sum(each.checked_at > since for each in board.servers) == count


def doubt(health: Health, name: str, *, times: int = 1) -> None:
    """Say as a worker does that clients could not connect to a server."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as worker:
        for _ in range(times):
            worker.sendto(doubts.encode("masters", name), str(health.paths.health_connect_failures))


def checks(health: Health, name: str) -> int:
    """Return how many checks of a server are in the log, at level debug."""
    seen = health.events("check", "server-up", "server-down")
    return sum(event["server"] == name for event in seen)


def test_a_doubted_server_is_checked_at_once(health: Health, backend: Backend):
    """Its next check is a minute away; a word from a worker brings the verdict now."""
    health.accept(of([server("master-0", backend, replace(SLOW, fall=1))]))
    health.start()
    health.wait_for("master-0", HealthVerdict.UP)
    backend.ready(500)
    doubt(health, "master-0")
    assert health.wait_for("master-0", HealthVerdict.DOWN).result is CheckResult.L7STS


def test_doubts_of_a_good_server_change_nothing(health: Health, backend: Backend):
    """However often it is doubted there is one check for each fast_interval, and it stays up."""
    health.accept(of([server("master-0", backend, SLOW), server("other", backend)], level="debug"))
    health.start()
    health.wait_for("master-0", HealthVerdict.UP)
    doubt(health, "master-0", times=1000)
    wait_until(lambda: checks(health, "master-0") == 2, what="it is checked once more")
    doubt(health, "master-0", times=1000)
    before = checks(health, "other")
    wait_until(lambda: checks(health, "other") > before + 5, what="others are checked as ever")
    assert checks(health, "master-0") == 2
    record = health.server("master-0")
    assert record is not None
    assert (record.verdict, record.failed) == (HealthVerdict.UP, 0)


def test_what_is_no_doubt_is_passed_over(health: Health, backend: Backend):
    """Garbage, a long datagram and servers that nobody knows: the next good one is heard."""
    health.accept(of([server("master-0", backend, replace(SLOW, fall=1))]))
    health.start()
    health.wait_for("master-0", HealthVerdict.UP)
    backend.ready(500)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
        for datagram in (b"", b"\xff", b"[1]", b"x" * 5000, doubts.encode("masters", "nobody")):
            stranger.sendto(datagram, str(health.paths.health_connect_failures))
    doubt(health, "master-0")
    assert health.wait_for("master-0", HealthVerdict.DOWN).result is CheckResult.L7STS
    assert "Traceback" not in health.log()


def test_the_socket_for_doubts_is_made_again(health: Health, backend: Backend):
    """Somebody who cleans up the runtime directory does not make health deaf for good."""
    path = health.paths.health_connect_failures
    health.accept(of([server("master-0", backend, replace(SLOW, fall=1))]))
    health.start()
    health.wait_for("master-0", HealthVerdict.UP)
    assert path.stat().st_mode & 0o777 == 0o600
    path.unlink()
    wait_until(path.exists, what="the socket is there again")
    backend.ready(500)
    doubt(health, "master-0")
    health.wait_for("master-0", HealthVerdict.DOWN)
    end(health.process)
    assert not path.exists()


def test_targets_that_never_stop_talking_starve_no_other_check(
    health: Health, backend: Backend, tmp_path: Path
):
    """A neighbour's death is found in its usual time while health checks servers of the worst kind."""
    files = certificates.issue(tmp_path, "127.0.0.1")
    secure = snapshots.check("https", interval=0.1, fast_interval=0.05, down_interval=0.1, timeout=5.0)
    with contextlib.ExitStack() as stack:
        ports = {kind: stack.enter_context(hostile(kind, files)) for kind in SECURE}
        bad = [server(kind, port, secure) for kind, port in ports.items()]
        health.accept(of([*bad, server("neighbour", backend)]))
        health.start()
        health.wait_for("neighbour", HealthVerdict.UP)
        for kind in ports:
            health.wait_for(kind, HealthVerdict.DOWN, by=3)
        backend.stop()
        stopped = time.monotonic()
        health.wait_for("neighbour", HealthVerdict.DOWN)
        # Two checks 50 ms apart; a handshake that keeps the loop for itself takes longer than its time-out.
        assert time.monotonic() - stopped < secure.timeout
