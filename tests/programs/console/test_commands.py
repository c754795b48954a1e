"""The operator's commands on a running appliance."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.machines import nobody
from support.peers.cluster import Cluster, cluster
from support.processes.processes import kill
from support.processes.waiting import wait_until

pytestmark = pytest.mark.programs

COMMAND = Path(sys.executable).parent / "appliance"


@pytest.fixture(scope="module")
def made() -> Iterator[Cluster]:
    """Give an appliance in front of three masters that the tests of this module share."""
    with cluster() as running:
        yield running


@pytest.fixture
def client(made: Cluster) -> Iterator[socket.socket]:
    """Give a connection that has reached a master."""
    with held(made) as connection:
        yield connection


@contextlib.contextmanager
def held(made: Cluster) -> Iterator[socket.socket]:
    """Hold a connection open that `sessions` lists with its server."""
    before = {each["id"] for each in sessions(made)}
    with socket.create_connection(("127.0.0.1", made.port), timeout=10) as connection:
        wait_until(
            lambda: [each for each in sessions(made) if each["server"] and each["id"] not in before],
            what="the session is listed",
        )
        yield connection


def sessions(made: Cluster, *arguments: str) -> list[dict[str, object]]:
    """Return what `appliance sessions --json` lists."""
    return json.loads(made.appliance.command("sessions", "--json", *arguments).stdout)


def server_state(made: Cluster, name: str) -> str:
    """Return a server's state."""
    [pool] = json.loads(made.appliance.command("status", "--json", check=False).stdout)["pools"]
    return next(each["state"] for each in pool["servers"] if each["name"] == name)


def ended(connection: socket.socket) -> bool:
    """Return whether the other side has ended the connection."""
    with contextlib.suppress(ConnectionResetError):
        return connection.recv(1) == b""
    return True


@pytest.mark.slow("a whole appliance for each situation")
def test_status_is_well(made: Cluster):
    """A running appliance is ok, and its table names everything."""
    wait_until(
        lambda: made.appliance.command("status", check=False).returncode == 0, what="everything is well"
    )
    shown = made.appliance.command("status").stdout
    for name in ("reload", "health", "proxy-api", "kube-api", "masters/master-0", "L7OK/200"):
        assert name in shown


@pytest.mark.promise("docs/troubleshooting.md", "`status` works with any program down")
@pytest.mark.parametrize("program", ["reload", "health", "proxy-api"])
def test_status_works_while_a_program_is_down(made: Cluster, program: str):
    """With one program stopped the answer is no, says which, and still shows everything else."""
    supervised = made.appliance.paths.supervisor_socket
    pid = wait_until(lambda: made.appliance.program_pid(program), what=f"{program} runs")
    silent = f"{program} is running: does not answer on its control socket"
    shown: list[subprocess.CompletedProcess[str]] = []

    def is_named() -> bool:  # in the first second of a program supervisord calls it starting
        shown.append(made.appliance.command("status", "--json", check=False))
        return bool(json.loads(shown[-1].stdout)["problems"] == [silent])

    os.kill(pid, signal.SIGSTOP)  # it is there, and answers nobody
    try:
        wait_until(is_named, what=silent)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert shown[-1].returncode == 1
    assert json.loads(shown[-1].stdout)["pools"][0]["up"] == 3
    assert supervised.exists()


@pytest.mark.promise("docs/operating.md", "drain, maint and ready")
def test_server_states(made: Cluster):
    """Drain, maint and ready reach the server, several at once, and say so."""
    said = made.appliance.command("maint", "masters/master-1", "masters/master-2").stdout
    assert "masters/master-1: maint" in said
    wait_until(lambda: server_state(made, "master-2") == "maint", what="maint is seen")
    said = made.appliance.command("drain", "--json", "masters/master-1").stdout
    assert json.loads(said) == [{"pool": "masters", "server": "master-1", "state": "drain"}]
    wait_until(lambda: server_state(made, "master-1") == "drain", what="drain is seen")
    made.appliance.command("ready", "masters/master-1", "masters/master-2")
    wait_until(lambda: server_state(made, "master-1") == "up", what="ready is seen")


@pytest.mark.slow("a whole appliance for each situation")
def test_weights(made: Cluster):
    """A server's share is changed, shown, and given back."""
    said = made.appliance.command("weight", "masters/master-0", "masters/master-1", "50%").stdout
    assert said.splitlines() == [
        f"masters/{name}: weight 50%, but the configuration has 1" for name in ("master-0", "master-1")
    ]
    wait_until(lambda: effective_weight(made, "master-1") == 0.5, what="the weight is seen")
    assert "0.5 of 1, set to 50%" in made.appliance.command("status", check=False).stdout
    done = made.appliance.command("weight", "masters/master-0", "masters/master-1", "100%", "--json").stdout
    assert json.loads(done)[1] == {"pool": "masters", "server": "master-1", "weight": "100%"}
    wait_until(lambda: effective_weight(made, "master-1") == 1.0, what="the configured weight is back")
    refused = made.appliance.command("weight", "masters/master-0", "lots", check=False)
    assert (refused.returncode, "0 to 256" in refused.stderr) == (1, True)


def effective_weight(made: Cluster, name: str) -> float | None:
    """Return the weight that a server has now."""
    [pool] = json.loads(made.appliance.command("status", "--json", check=False).stdout)["pools"]
    return next(each["effective_weight"] for each in pool["servers"] if each["name"] == name)


@pytest.mark.slow("a whole appliance for each situation")
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("masters/master-9", "masters/master-"),
        ("master-1", "Did you mean masters/master-1?"),
        ("nonsense", "See: appliance status"),
    ],
)
def test_unknown_servers_are_misuse(made: Cluster, name: str, hint: str):
    """An unknown server changes nothing, not even for the known one beside it, and the nearest is named."""
    result = made.appliance.command("maint", "masters/master-0", name, check=False)
    assert result.returncode == 2
    assert hint in result.stderr
    assert server_state(made, "master-0") == "up"


@pytest.mark.slow("a whole appliance for each situation")
def test_sessions_are_listed_and_filtered(made: Cluster, client: socket.socket):
    """A connection is listed with its server, and by it, its frontend and its source."""
    port = client.getsockname()[1]
    [mine] = [each for each in sessions(made) if each["client"] == f"127.0.0.1:{port}"]
    assert list(mine) == [
        "id", "frontend", "client", "server", "age", "idle", "bytes_in", "bytes_out", "phase",
    ]  # fmt: skip
    for arguments in (["--server", mine["server"]], ["--frontend", "kube-api"], ["--source", "127.0.0.0/8"]):
        assert mine["id"] in [each["id"] for each in sessions(made, *arguments)]
    for arguments in (["--server", "masters/x"], ["--frontend", "x"], ["--source", "2001:db8::/32"]):
        assert sessions(made, *arguments) == []
    assert mine["id"] in made.appliance.command("sessions").stdout


@pytest.mark.slow("a whole appliance for each situation")
@pytest.mark.parametrize("how", ["id", "server", "source"])
def test_sessions_are_killed(made: Cluster, client: socket.socket, how: str):
    """A connection ends when it is killed by its id, its server or its source."""
    [mine] = sessions(made)
    chosen = {
        "id": [str(mine["id"])],
        "server": ["--server", str(mine["server"])],
        "source": ["--source", "127.0.0.1"],
    }
    done = made.appliance.command("sessions", "kill", *chosen[how], "--json")
    assert json.loads(done.stdout) == {"killed": 1}
    assert ended(client)


def test_killing_nothing_is_a_no(made: Cluster):
    """Where nothing matches the answer is no."""
    assert made.appliance.command("sessions", "kill", "proxy-api-1-0-99999", check=False).returncode == 1


@pytest.mark.parametrize("arguments", [[], ["x", "--server", "masters/master-0"], ["--source", "nowhere"]])
def test_killing_needs_one_choice(made: Cluster, arguments: list[str]):
    """None, several, or something that is no address is misuse."""
    assert made.appliance.command("sessions", "kill", *arguments, check=False).returncode == 2


def test_reload_is_unchanged(made: Cluster):
    """A configuration that is obeyed already is said to be."""
    made.appliance.write(made.config())
    assert "Unchanged" in made.appliance.command("reload").stdout


def test_reload_names_what_has_changed(made: Cluster):
    """Changed paths, generation and duration are printed."""
    made.appliance.write(made.config(revision=1))
    said = made.appliance.command("reload").stdout
    assert ": configuration " in said
    assert "api.frontends.kube-api" in said
    made.appliance.write(made.config(revision=2))
    answer = json.loads(made.appliance.command("reload", "--json").stdout)
    assert answer["ok"] is True
    assert {"generation", "changed", "duration_s"} <= answer.keys()


def test_reload_shows_warnings(made: Cluster):
    """What is accepted but looks wrong is said beside the result, with its place."""
    config = made.config(revision=3)
    config["pools"] = {**made.config()["pools"], "spare": {"servers": {"one": {"address": "127.0.0.1:9"}}}}
    made.appliance.write(config)
    done = made.appliance.command("reload")
    assert "pools.spare" in done.stdout
    assert f"warning: {made.appliance.paths.config}:" in done.stderr
    assert "no frontend uses this pool" in done.stderr


def test_reload_refuses_with_places(made: Cluster):
    """Every error is printed with file, line and column, and nothing changes."""
    config = made.config()
    config["apii"] = {}
    config["pools"] = {**made.config()["pools"], "broken": {"balance": "fair"}}
    made.appliance.write(config)
    refused = made.appliance.command("reload", check=False)
    assert refused.returncode == 1
    assert refused.stderr.count(f"{made.appliance.paths.config}:") >= 2
    assert "nothing has changed" in refused.stderr
    as_json = made.appliance.command("reload", "--json", check=False)
    assert as_json.returncode == 1
    errors = json.loads(as_json.stdout)["errors"]
    assert all({"message", "path", "line", "column"} == each.keys() for each in errors)
    made.appliance.write(made.config())
    made.appliance.command("reload")


def unwatched(made: Cluster) -> dict[str, object]:
    """Have the file obeyed only when that is asked for; return what it says."""
    config = made.config()
    config["reload"]["watch"] = "off"
    made.appliance.write(config)
    made.appliance.command("reload")
    return config


@pytest.mark.slow("a whole appliance for each situation")
def test_a_dry_run_shows_and_changes_nothing(made: Cluster):
    """Each key with its old and new value and its line, what it takes; the workers stay, the file too."""
    config = unwatched(made)
    accepted, accepting = made.appliance.accepted(), made.appliance.accepting()
    before = {each.pid for each in made.appliance.workers()}
    config["group"] = "daemon"
    config["pools"]["masters"]["retries"] = 9
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config["api"]["frontends"]["second"] = {"bind": [f"127.0.0.1:{port}"], "pool": "masters"}
    made.appliance.write(config)
    done = made.appliance.command("reload", "--dry-run")
    assert f"{made.appliance.paths.config}:" in done.stdout
    assert "pools.masters.retries: 3 -> 9  [live]" in done.stdout
    assert "+ api.frontends.second  [new workers]" in done.stdout
    assert "proxy-api: new workers beside the old ones" in done.stdout
    assert "To do it: appliance reload" in done.stdout
    assert "warning: group: takes effect when the appliance is started again" in done.stderr
    answer = json.loads(made.appliance.command("--json", "--dry-run", "reload").stdout)
    assert (answer["ok"], answer["generations"]) == (True, ["proxy-api"])
    wait_until(
        lambda: {each.pid for each in made.appliance.workers()} <= before,
        what="only workers that were there before are left",
    )
    assert made.appliance.accepted() == accepted
    assert [each.pid for each in made.appliance.accepting()] == [each.pid for each in accepting]
    unwatched(made)
    assert "Nothing would change" in made.appliance.command("reload", "--dry-run").stdout
    made.appliance.write(made.config())
    made.appliance.command("reload")


@pytest.mark.slow("a whole appliance for each situation")
def test_a_dry_run_says_what_a_program_refuses(made: Cluster):
    """A port that somebody else has is found by trying it; and no reload was refused by that."""
    config = unwatched(made)
    taken = made.masters[0].port
    config["api"]["frontends"]["second"] = {"bind": [f"127.0.0.1:{taken}"], "pool": "masters"}
    made.appliance.write(config)
    done = made.appliance.command("reload", "--dry-run", check=False)
    assert done.returncode == 1
    assert str(taken) in done.stderr
    assert "would be refused" in done.stdout
    config["nonsense"] = {}
    made.appliance.write(config)
    done = made.appliance.command("reload", "--dry-run", "--json", check=False)
    assert [each["path"] for each in json.loads(done.stdout)["errors"]] == ["nonsense"]
    assert not [each for each in made.appliance.status()["problems"] if "refused" in each]
    assert made.appliance.command("reload", "--dry-run", "--force", check=False).returncode == 2
    made.appliance.write(made.config())
    made.appliance.command("reload")


def test_a_reload_of_another_file_is_refused(tmp_path: Path, made: Cluster):
    """The appliance obeys the file that it was started with: nobody shall believe that another one holds."""
    other = tmp_path / "other.yaml"
    other.write_text(made.appliance.paths.config.read_text())
    before = made.appliance.status()["configuration"]
    for words in (["reload", "--config", str(other)], ["--config", str(other), "reload", "--dry-run"]):
        refused = made.appliance.command(*words, check=False)
        assert refused.returncode == 2
        assert f"the appliance uses {made.appliance.paths.config}" in refused.stderr
        assert f"appliance check --config {other}" in refused.stderr
    assert made.appliance.status()["configuration"] == before
    link = tmp_path / "link.yaml"
    link.symlink_to(made.appliance.paths.config)
    made.appliance.command("reload", "--config", str(link))


def test_commands_say_when_nobody_answers(tmp_path_factory: pytest.TempPathFactory, made: Cluster):
    """Without an appliance every command says so in words, with exit code 1."""
    empty = str(tmp_path_factory.mktemp("e"))
    for arguments in (["reload"], ["reload", "--json"], ["sessions"], ["maint", "masters/master-0"]):
        result = made.appliance.command("--runtime-dir", empty, *arguments, check=False)
        assert result.returncode == 1
        assert "Is the appliance running" in result.stdout + result.stderr
        assert "Traceback" not in result.stderr


def test_a_reload_without_anything_says_nothing_of_traffic(tmp_path_factory: pytest.TempPathFactory):
    """Only where supervisord answers is there traffic that a lost reload does not affect."""
    empty = tmp_path_factory.mktemp("e")
    result = run_command("--runtime-dir", str(empty), "reload")
    assert "Nor does supervisord" in result.stderr
    assert "raffic" not in result.stderr


@pytest.mark.slow("a whole appliance for each situation")
@pytest.mark.needs("setpriv", "unshare", root=True)
@pytest.mark.skipif(not nobody.possible(), reason="this machine gives no mount namespace")
@pytest.mark.parametrize("arguments", [["status"], ["alive"], ["reload"], ["sessions"], ["vip", "status"]])
@pytest.mark.parametrize("below", ["", "run"])
def test_without_permission_a_command_says_so(arguments: list[str], below: str):
    """Who may not look into the runtime directory is told that, and not that programs are gone."""
    with tempfile.TemporaryDirectory() as closed:  # of mode 0700
        place = Path(closed) / below
        words = nobody.command([str(COMMAND), "--runtime-dir", str(place), *arguments])
        result = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 1
    assert f"{place}: Permission denied" in result.stderr
    assert "gone" not in result.stdout


def _status(made: Cluster) -> dict[str, Any]:
    return json.loads(made.appliance.command("status", "--json", check=False).stdout)


def run_command(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command, wherever it is to look."""
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.slow("a whole appliance for each situation")
def test_status_and_sessions_work_without_supervisord_and_masters(made: Cluster):
    """Runs last: with supervisord and a proxy master killed, workers are still seen and asked."""
    generation = made.appliance.generation()
    kill(made.appliance.pid)
    kill(wait_until(lambda: made.appliance.program_pid("proxy-api"), what="the master"))
    with held(made):
        wait_until(lambda: _status(made)["pools"][0]["current"] == 1, what="the worker's board shows it")
        found = _status(made)
        assert len(sessions(made)) == 1
    assert found["supervisor"] is not None
    [reason] = [each["reason"] for each in found["programs"] if each["name"] == "proxy-api"]
    assert reason == "its workers continue to serve without it: 2"
    assert found["pools"][0]["up"] == 3
    assert generation in [each["generation"] for each in found["generations"]]
    for pid in made.appliance.processes():  # supervisord, who would have, is dead
        kill(pid)
    for socket_file in made.appliance.paths.runtime.glob("*.control"):
        socket_file.unlink()
