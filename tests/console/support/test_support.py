"""`appliance support`: what is in the archive, what is not, and that no secret is."""

import io
import json
import os
import stat
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.peers.cluster import cluster
from support.processes.waiting import wait_until

from appliance.console.command import main
from appliance.console.support import support
from appliance.model.paths import Paths
from appliance.net.files import snapshots
from appliance.net.sources.judging import judge

pytestmark = pytest.mark.sockets


def contents(path: Path) -> Mapping[str, str]:
    """Return the parts of an archive by name, without its folder."""
    with tarfile.open(path) as packed:
        found = {}
        for each in packed.getmembers():
            file = packed.extractfile(each)
            assert file is not None
            found[each.name.partition("/")[2]] = file.read().decode()
        return found


def run(root: Path, *arguments: str) -> Result:
    """Run the command with everything below a directory."""
    places = Paths(config=root / "c.yaml", runtime=root / "run", state=root / "state")
    return CliRunner().invoke(main, ["support", *arguments], env=places.environment())


@pytest.mark.programs
def test_of_a_running_appliance(tmp_path: Path):
    """Status, boards, answers, configuration and machine are in it; the file is its owner's alone."""
    file = tmp_path / "ticket.tar.gz"
    with cluster(workers=2) as made:
        wait_until(
            lambda: made.appliance.command("status", check=False).returncode == 0, what="everything is well"
        )
        made.appliance.command("support", str(file))
        refused = made.appliance.command("support", str(file), check=False)
    assert refused.returncode == 2
    assert "already exists" in refused.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    parts = contents(file)
    assert json.loads(parts["status.json"])["ok"] is True
    assert "masters/master-0" in parts["status.txt"]
    assert len([name for name in parts if name.startswith("boards/worker-proxy-api-")]) == 2
    for name in ("programs/proxy-api.json", "programs/reload.json", "boards/health.json", "supervisor.json"):
        assert json.loads(parts[name]), name
    assert yaml.safe_load(parts["configuration.yaml"])["pools"]["masters"]["balance"] == "roundrobin"
    assert parts["check.txt"]
    assert json.loads(parts["snapshots/accepted.json"])["number"] == 1
    assert "Max open files" in parts["processes.txt"]
    assert "appliance.programs.proxy" in parts["processes.txt"]
    assert json.loads(parts["versions.json"])["kernel"]["system"] == "Linux"
    assert json.loads(parts["network/links.json"])
    assert "MemTotal" in parts["proc/meminfo.txt"]
    told = {each["name"]: each for each in json.loads(parts["parts.json"])}
    assert set(parts) == {name for name, each in told.items() if not each["missing"]} | {"parts.json"}
    assert "journalctl" in told["log.txt"]["missing"]


def test_bird_is_in_it_without_passwords(tmp_path: Path):
    """Its file has passwords that the configuration may have no more; its log says why sessions ended."""
    runtime = tmp_path / "run"
    runtime.mkdir()
    (tmp_path / "state").mkdir()
    lines = ["protocol bgp tor_a {", '  password "of-yesterday";', "  hold time 9; keepalive time 3;", "}"]
    (runtime / "bird.conf").write_text("\n".join(lines))
    (runtime / "bird.log").write_text("tor_a: Received: Bad peer AS\n")
    assert run(tmp_path, str(tmp_path / "ticket.tar.gz")).exit_code == 0
    parts = contents(tmp_path / "ticket.tar.gz")
    lines[1] = "  password (left out);"
    assert parts["bird/bird.conf"] == "\n".join(lines)
    assert "of-yesterday" not in "".join(parts.values())
    assert "Bad peer AS" in parts["bird/bird.log"]


def test_of_nothing(tmp_path: Path):
    """Where nothing runs and nothing is configured each part that is missing is named with its reason."""
    file = tmp_path / "a.tar.gz"
    result = run(tmp_path, str(file), "--json")
    told = json.loads(result.stdout)
    missing = {each["name"]: each["missing"] for each in told["parts"] if each["missing"]}
    assert result.exit_code == 0
    assert told["file"] == str(file)
    assert "No such file" in missing["configuration.yaml"]
    assert "No such file" in missing["supervisor.json"]
    assert "does not run" in contents(file)["status.json"]
    again = run(tmp_path, str(tmp_path / "b.tar.gz"))
    assert "not in it: configuration.yaml: " in again.stderr


def test_a_file_that_cannot_be_written(tmp_path: Path):
    """Misuse says what to do; a link in the way is not followed."""
    (tmp_path / "link").symlink_to(tmp_path / "target")
    assert run(tmp_path, str(tmp_path / "link")).exit_code == 2
    assert not (tmp_path / "target").exists()
    result = run(tmp_path, str(tmp_path / "none" / "a.tar.gz"))
    assert result.exit_code == 1
    assert "a directory with room" in result.output


@pytest.mark.programs
def test_by_default_it_is_named_by_host_and_time(tmp_path: Path):
    """In the directory where it is called."""
    places = Paths(config=tmp_path / "c.yaml", runtime=tmp_path / "run", state=tmp_path / "state")
    subprocess.run(
        [sys.executable, "-m", "appliance.console", "support"],
        cwd=tmp_path,
        env={**os.environ, **places.environment()},
        check=True,
        capture_output=True,
    )
    (found,) = tmp_path.glob("appliance-support-*Z.tar.gz")
    assert contents(found)["parts.json"]


def test_it_goes_to_standard_output(tmp_path: Path):
    """Nothing else is there: what is not in it is on standard error, and no file stays."""
    done = run(tmp_path, "-")
    with tarfile.open(fileobj=io.BytesIO(done.stdout_bytes)) as archive:
        assert [each for each in archive.getnames() if each.endswith("/parts.json")]
    assert "not in it: " in done.stderr


def test_it_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A part that is too long is cut, what does not fit any more is named, and so is what takes too long."""
    monkeypatch.setattr(support, "MOST_PART", 100)
    monkeypatch.setattr(support, "MOST", 1000)
    result = run(tmp_path, str(tmp_path / "a.tar.gz"), "--json")
    parts = json.loads(result.stdout)["parts"]
    assert [each for each in parts if each["cut"]]
    assert [each for each in parts if "the archive is full" in str(each["missing"])]
    monkeypatch.setattr(support, "_MOST_SECONDS", -1.0)
    parts = json.loads(run(tmp_path, str(tmp_path / "b.tar.gz"), "--json").stdout)["parts"]
    assert all("left out" in each["missing"] for each in parts)


def test_an_error_leaves_no_half_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A disk that is full while it is written."""

    def full(*_: object) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(support.Archive, "add", full)
    result = run(tmp_path, str(tmp_path / "a.tar.gz"))
    assert result.exit_code == 1
    assert not (tmp_path / "a.tar.gz").exists()


_LETTERS = st.characters(codec="ascii", categories=["L", "N"])
_SECRET = st.text(_LETTERS, min_size=8, max_size=24).map(lambda text: f"Zq{text}9")
_PASS = st.text(_LETTERS, min_size=2, max_size=4).map(lambda text: f"Zq{text}9x")


@pytest.mark.promise("docs/security.md", "no secret is in an archive for a ticket")
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    password=_PASS,
    key=st.binary(min_size=32, max_size=40).map(bytes.hex),
    stats=_SECRET,
    filed=_SECRET,
    token=_SECRET,
    user=_SECRET,
    argument=_SECRET,
    query=_SECRET,
    wrong=_SECRET,
    hook=_SECRET,
    checked=_SECRET,
)
def test_no_secret_of_a_configuration_is_in_it(monkeypatch: pytest.MonkeyPatch, **secrets: str):
    """Of the file, right or wrong, of what it names, of snapshots, of logs and events."""
    monkeypatch.setattr(support, "machine_parts", lambda _: ())
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        _write(root, secrets)
        done = run(root, str(root / "a.tar.gz"))
        assert done.exit_code == 0, done.output
        packed = contents(root / "a.tar.gz")
    assert "192.0.2.200" in packed["configuration.yaml"]
    assert {"log.txt", "events/events.jsonl", "snapshots/accepted.json", "snapshots/1.json"} <= packed.keys()
    assert "begun" in packed["log.txt"]
    for name, text in packed.items():
        for what, secret in secrets.items():
            assert secret not in text, (name, what)


def _write(root: Path, secrets: Mapping[str, str]) -> None:
    """Write a configuration with secrets everywhere, accepted; then one with another, and a mistake."""
    for name in ("run", "state"):
        (root / name).mkdir()
    (root / "stats.pass").write_text(f"{secrets['filed']}\n")
    (root / "token").write_text(secrets["token"])
    (root / "hook").write_text(f"https://hooks.example.com?key={secrets['hook']}\n")
    user = {"name": "a", "user": {"token": secrets["user"]}}
    (root / "kubeconfig").write_text(yaml.safe_dump({"users": [user], "clusters": []}))
    value = {
        "stats": {"auth": {"user": "admin", "password_file": str(root / "stats.pass")}},
        "kubernetes": {"kubeconfig": str(root / "kubeconfig"), "token_file": str(root / "token")},
        "log": {"file": str(root / "log")},
        "notify": {"ops": {"webhook_file": str(root / "hook")}},
        "api": {"frontends": {"f": {"bind": ["127.0.0.1:6443"], "pool": "p"}}},
        "pools": {
            "p": {
                "servers": {"s": {"address": "192.0.2.1:6443"}},
                "check": {"type": "https", "path": f"/readyz?t={secrets['checked']}"},
            }
        },
        "virtual_ips": {
            "api": {
                "addresses": ["192.0.2.200/24"],
                "interface": "eth0",
                "router_id": 7,
                "auth": {"pass": secrets["password"]},
                "track": {
                    "a": {"http": f"http://localhost:1/readyz?t={secrets['query']}"},
                    "b": {"script": f"/bin/true --password {secrets['argument']}"},
                },
                "notify": {"active": f"/bin/true {secrets['argument']}"},
            },
            "two": {
                "addresses": ["192.0.2.201/24"],
                "interface": "eth0",
                "router_id": 8,
                "version": 3,
                "auth": {"hmac": {"keys": {1: secrets["key"]}, "send": 1}},
            },
        },
    }
    places = Paths(config=root / "c.yaml", runtime=root / "run", state=root / "state")
    places.config.write_text(yaml.safe_dump(value))
    judged = judge(places, number=1)
    assert judged.snapshot is not None, judged.errors
    snapshots.propose(places, judged.snapshot)
    snapshots.accept(places, judged.snapshot)
    lines = "".join(f'{{"event": "begun", "said": "{each}"}}\n' for each in secrets.values())
    known = lines.replace(secrets["wrong"], "x")
    (root / "log").write_text(known)
    (root / "state" / "events.jsonl").write_text(known)
    value["stats"] = {
        "auth": {"user": "admin", "password": secrets["stats"], secrets["wrong"]: secrets["wrong"]}
    }
    places.config.write_text(yaml.safe_dump(value))


_DUMMIES = {
    name: f"Zq{number:09}9x"
    for number, name in enumerate(
        ("password", "stats", "filed", "token", "user", "argument", "query", "wrong", "hook", "checked")
    )
} | {"key": bytes(range(32)).hex()}


@pytest.fixture
def lesser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a directory with an accepted configuration, and a file that is none of the appliance's."""
    monkeypatch.setattr(support, "machine_parts", lambda _: ())
    _write(tmp_path, {**_DUMMIES, "password": "Zq00009x"})
    (tmp_path / "shadow").write_text("root:$6$nobody-shall-see-this\n")
    return tmp_path


@pytest.mark.promise("rights", "the files in the runtime and state directories")
def test_a_link_in_the_state_directory_is_not_followed(lesser: Path):
    """Who may write there may name any file, which root may read; a FIFO there holds nobody up."""
    (lesser / "state" / "events.jsonl").unlink()
    (lesser / "state" / "events.jsonl").symlink_to(lesser / "shadow")
    os.mkfifo(lesser / "state" / "events.fifo")
    done = run(lesser, str(lesser / "t.tar.gz"))
    assert done.exit_code == 0, done.output
    assert "nobody-shall-see-this" not in str(contents(lesser / "t.tar.gz"))
    assert "not in it: events/events.jsonl" in done.output


@pytest.mark.needs(root=True)
@pytest.mark.promise("rights", "the files in the runtime and state directories")
def test_a_log_of_somebody_else_is_not_read(lesser: Path):
    """The accepted configuration says where it is, and the appliance's user may write that."""
    (lesser / "log").write_text((lesser / "shadow").read_text())
    os.chown(lesser / "state", 65534, 65534)
    done = run(lesser, str(lesser / "t.tar.gz"))
    assert done.exit_code == 0, done.output
    assert "nobody-shall-see-this" not in str(contents(lesser / "t.tar.gz"))
    assert "no file of the appliance's user" in done.output
