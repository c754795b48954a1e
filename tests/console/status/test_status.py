"""`appliance status` reads whatever lies in a runtime directory: boards, sockets, snapshot, notes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.processes.processes import running
from support.processes.waiting import wait_until
from support.values import boards
from support.values.snapshots import frontend, group, pool, server, snapshot, virtual_router
from support.vrrp.vip_answers import answer, router

from appliance.console.command import main
from appliance.model.check_results import CheckResult
from appliance.model.paths import Paths
from appliance.model.server_states import HealthVerdict
from appliance.model.snapshot.snapshot import encode
from appliance.model.worker_phases import WorkerPhase
from appliance.net.boards.board_writer import BoardWriter
from appliance.net.files.degraded import Degraded, write_degraded
from appliance.wire.boards import health_board, worker_board
from appliance.wire.boards.worker_board import WorkerBoard
from appliance.wire.lines.control import AnswerProblem

pytestmark = pytest.mark.programs

PROGRAM = """
import sys
from pathlib import Path
import gevent
from appliance.net.control.control_server import ControlServer
from appliance.wire.lines.control import good
answer = good(program=sys.argv[2], pid=4711, started_at=1.0, snapshot=3, generation=5)
ControlServer(Path(sys.argv[1]), {"status": lambda call: answer}, on_error=print)
gevent.sleep(600)
"""

SUPERVISORD = """
[supervisord]
nodaemon = true
pidfile = {root}/supervisord.pid
logfile = /dev/null
logfile_maxbytes = 0
[unix_http_server]
file = {root}/supervisor.sock
[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
[program:reload]
command = sleep 600
startsecs = 0
[program:health]
command = sh -c "exit 3"
startsecs = 0
autorestart = false
[program:proxy-api]
command = {root}/no-such-program
startretries = 0
"""


@pytest.fixture
def paths(tmp_path_factory: pytest.TempPathFactory) -> Paths:
    """Give a runtime directory with a short name that holds an accepted snapshot."""
    # Socket names have to fit into 107 bytes.
    root = tmp_path_factory.mktemp("s")
    made = Paths(config=root / "appliance.yaml", runtime=root, state=root)
    servers = [server("up", port=6443), server("down", weight=2), server("new")]
    groups = [group(frontends=[frontend("kube-api", pool="masters")])]
    configured = snapshot(number=3, cluster="ocp4", groups=groups, pools=[pool("masters", servers=servers)])
    made.accepted.write_bytes(encode(configured))
    return made


def status(paths: Paths, *arguments: str) -> Result:
    """Run the command."""
    environment = {**paths.environment(), "COLUMNS": "200"}
    return CliRunner().invoke(main, ["status", *arguments], env=environment)


def values(paths: Paths) -> dict[str, object]:
    """Return the JSON."""
    return json.loads(status(paths, "--json").stdout)


def write_health(paths: Paths) -> None:
    """Write the prober's board, with one server up, one down, and one that it does not know yet."""
    known = (
        boards.health("up", pool="masters"),
        boards.health(
            "down",
            pool="masters",
            verdict=HealthVerdict.DOWN,
            result=CheckResult.L7STS,
            status=500,
            detail="Internal Server Error",
        ),
    )
    BoardWriter(paths.health_board).publish(health_board.encode(boards.health_board(*known)))


def write_worker(paths: Paths, board: WorkerBoard) -> None:
    """Write a worker's board."""
    path = paths.worker_board(board.program, board.generation, board.index)
    BoardWriter(path).publish(worker_board.encode(board))


def live_worker(**changes: object) -> WorkerBoard:
    """Return the board of a worker that lives: it has this process's number."""
    fields = {
        "pid": os.getpid(),
        "sessions": 2,
        "frontends": (boards.frontend_counters("kube-api", current=2, total=7),),
        "servers": (boards.server_counters("up", pool="masters", current=2, total=7),),
        **changes,
    }
    return boards.worker(**fields)


def dead_pid() -> int:
    """Return the number of a process that has ended."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_json_keys_are_stable(paths: Paths):
    """Scripts rely on these keys."""
    write_health(paths)
    write_worker(paths, live_worker())
    found = values(paths)
    assert list(found) == [
        "ok", "problems", "at", "version", "configuration", "source", "cluster", "degraded", "supervisor",
        "programs", "frontends", "pools", "generations", "ended", "virtual_ips", "shared_ips", "bgp",
        "discovery", "redirects", "guest", "set_aside", "left_out", "take_overs", "nodes",
        "digest",
    ]  # fmt: skip
    assert list(found["programs"][0]) == [
        "name", "state", "expected", "ok", "pid", "uptime", "generation", "workers", "configuration",
        "reason",
    ]  # fmt: skip
    assert list(found["frontends"][0]) == [
        "name", "program", "binds", "pool", "respond", "max_connections", "full", "current", "total",
        "denied", "failed", "bytes_in", "bytes_out", "pools",
    ]  # fmt: skip
    [masters] = found["pools"]
    assert list(masters) == [
        "name", "balance", "in_use", "ok", "up", "current", "total", "queued", "downs", "down_seconds",
        "down_since", "servers",
    ]  # fmt: skip
    assert list(masters["servers"][0]) == [
        "name", "address", "resolved", "state", "since", "backup", "weight", "operator_weight",
        "effective_weight", "check",
        "current", "total", "failed", "queued", "bytes_in", "bytes_out", "given_up", "retried",
        "redispatched", "client_aborts", "server_aborts", "connected", "ended", "queue_seconds",
        "connect_seconds", "session_seconds", "longest_queue", "longest_connect", "longest_session",
        "downs", "down_seconds", "failed_up",
    ]  # fmt: skip
    assert list(masters["servers"][0]["check"]) == [
        "result", "status", "detail", "duration", "ended_at", "streak", "failed",
    ]  # fmt: skip
    assert list(found["generations"][0]) == [
        "program", "generation", "phase", "pids", "configuration", "started_at", "sessions", "drain_deadline",
        "holds", "compiled",
    ]  # fmt: skip
    assert list(found["generations"][0]["holds"][0]) == ["pool", "server", "connections"]


def test_nothing_at_all(tmp_path: Path):
    """In an empty directory status says what is missing, and the answer is no."""
    result = status(Paths(config=tmp_path / "c", runtime=tmp_path, state=tmp_path))
    assert result.exit_code == 1
    assert "no accepted configuration" in result.stdout
    assert "the appliance does not run" in result.stdout


def test_boards_alone(paths: Paths):
    """With every program down the boards and the snapshot still tell everything else."""
    write_health(paths)
    write_worker(paths, live_worker())
    result = status(paths)
    assert result.exit_code == 1
    assert "supervisord does not answer" in result.stdout
    assert "masters/up" in result.stdout
    assert "L7STS/500" in result.stdout
    states = {each["name"]: each["state"] for each in values(paths)["pools"][0]["servers"]}
    assert states == {"up": "up", "down": "down", "new": "checking"}
    assert values(paths)["frontends"][0]["current"] == 2


def test_boards_of_dead_workers_are_ignored(paths: Paths):
    """What a killed worker has counted stays counted; it is in no generation, and garbage harms nobody."""
    write_worker(paths, live_worker())
    write_worker(paths, live_worker(index=1, pid=dead_pid()))
    (paths.runtime / "worker-proxy-api-9-0.board").write_bytes(b"garbage")
    found = values(paths)
    assert found["frontends"][0]["total"] == 14
    assert [each["pids"] for each in found["generations"]] == [[os.getpid()]]


def test_a_board_whose_number_belongs_to_another_process_is_ignored(paths: Paths):
    """Where a worker's socket refuses, its number is somebody else's by now."""
    write_worker(paths, live_worker())
    control = paths.worker_control("proxy-api", 1, 0)
    code = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, control], check=True)
    assert values(paths)["generations"] == []


def test_draining_generations_are_shown(paths: Paths):
    """What drains is listed with what it holds."""
    write_worker(paths, live_worker(generation=2))
    write_worker(paths, live_worker(phase=WorkerPhase.DRAINING, drain_deadline=4e9))
    assert "masters/up 2" in status(paths).stdout
    assert [each["phase"] for each in values(paths)["generations"]] == ["draining", "accepting"]


def test_programs_answer_without_supervisord(paths: Paths):
    """A program's own answer is enough."""
    arguments = [sys.executable, "-c", PROGRAM, str(paths.control("proxy-api")), "proxy-api"]
    with running(arguments, log=paths.runtime / "log"):
        wait_until(paths.control("proxy-api").exists, what="the program listens")
        programs = {each["name"]: each for each in values(paths)["programs"]}
    assert programs["proxy-api"]["state"] == "running"
    assert (programs["proxy-api"]["pid"], programs["proxy-api"]["generation"]) == (4711, 5)
    assert programs["reload"]["state"] == "gone"


def test_supervisord_says_why_programs_are_down(paths: Paths):
    """Exit statuses and programs that cannot be started are reported with the reason."""
    conf = paths.runtime / "supervisord.conf"
    conf.write_text(SUPERVISORD.format(root=paths.runtime))
    with running(
        [sys.executable, "-m", "supervisor.supervisord", "-n", "-c", str(conf)], log=paths.runtime / "log"
    ):
        found = wait_until(lambda: _settled(values(paths)), what="supervisord has tried everything")
    programs = {each["name"]: each for each in found["programs"]}
    assert found["supervisor"] is None
    assert programs["reload"]["reason"] == "does not answer on its control socket"
    assert (programs["health"]["state"], programs["proxy-api"]["state"]) == ("exited", "fatal")
    assert "3" in programs["health"]["reason"]
    assert "no-such-program" in programs["proxy-api"]["reason"]


def _settled(found: dict[str, object]) -> dict[str, object] | None:
    states = {each["name"]: each["state"] for each in found["programs"]}
    settled = states["health"] == "exited" and states["proxy-api"] == "fatal"
    return found if settled else None


def test_a_proxy_says_why_it_could_not_start(paths: Paths):
    """The note that a proxy master leaves behind is shown."""
    note = {"since": 1.0, "problems": [{"message": "cannot bind 0.0.0.0:9445"}]}
    (paths.runtime / "proxy-api.failure.json").write_text(json.dumps(note))
    (paths.runtime / "health.failure.json").write_text("{")
    reasons = {each["name"]: each["reason"] for each in values(paths)["programs"]}
    assert reasons["proxy-api"] == "cannot bind 0.0.0.0:9445"
    assert reasons["health"] is None


def test_a_degraded_start_is_shouted(paths: Paths):
    """That the last good configuration runs, and why, stands on top."""
    problem = AnswerProblem(message="unknown key", path="api.x", line=3, column=7)
    write_degraded(paths, Degraded(since=1.0, problems=(problem,)))
    shown = status(paths).stdout.splitlines()
    assert shown[0].startswith("DEGRADED")
    assert "api.x: unknown key" in shown[1]
    assert values(paths)["degraded"]["errors"][0]["line"] == 3


def test_a_broken_snapshot_is_named(paths: Paths):
    """A file that holds no snapshot is a problem, not a traceback."""
    paths.accepted.write_text("{")
    result = status(paths)
    assert result.exit_code == 1
    assert "no accepted configuration" in result.stdout


@contextmanager
def vrrp(paths: Paths, said: dict[str, object]) -> Iterator[None]:
    """Accept a configuration with one virtual IP, and have a program answer on vrrp's socket."""
    routers = [virtual_router("api")]
    paths.accepted.write_bytes(encode(snapshot(groups=[], pools=[], virtual_routers=routers)))
    file = paths.runtime / "answer.json"
    file.write_text(json.dumps(said))
    arguments = [sys.executable, "-m", "support.vrrp.fake_vrrp", str(paths.control("vrrp")), str(file)]
    tests = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with running(arguments, log=paths.runtime / "log", environment=tests):
        wait_until(paths.control("vrrp").exists, what="the program listens")
        yield


def test_virtual_ips_are_shown(paths: Paths):
    """A virtual IP has its line, with who is active."""
    with vrrp(paths, answer(router())):
        shown = [line.split() for line in status(paths).stdout.splitlines()]
        [found] = values(paths)["virtual_ips"]
    line = next(words for words in shown if words[:1] == ["api"])
    assert line == ["api", "192.0.2.200/24", "eth0", "51", "active", "2h", "120", "this", "node"]
    assert list(found) == [
        "name", "addresses", "interface", "router_id", "version", "sync_group", "state", "since", "active",
        "active_peer", "priority", "base", "yielded",
    ]  # fmt: skip


def test_a_fault_of_a_virtual_ip_is_a_problem(paths: Paths):
    """It stands on top, with its reasons."""
    with vrrp(paths, answer(router(state="fault", fault_reasons=["eth0 is down"]))):
        found = values(paths)
    assert "virtual IP api is in fault: eth0 is down" in found["problems"]
    assert found["programs"][1]["name"] == "vrrp"
    assert found["programs"][1]["state"] == "running"


def test_an_answer_of_vrrp_that_nobody_understands_hides_nothing_else(paths: Paths):
    """Of another version's vrrp the program is shown, and its virtual IPs without a state."""
    with vrrp(paths, {"pid": 4711, "routers": "none"}):
        found = values(paths)
    assert found["programs"][1]["pid"] == 4711
    assert found["virtual_ips"][0]["state"] is None
