"""`appliance fleet upgrade` and `support`, on two appliances behind real sshds.

What an archive is and how it is installed is tested where `appliance upgrade` is: here a node installs
nothing, and has the release that its command belongs to take over.
"""

import contextlib
import hashlib
import json
import os
import signal
import socket
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from support.load.load import Load
from support.machines.fleet import Fleet, fleet
from support.processes.waiting import wait_until
from support.supervisor.release import NotOurChild, Release
from support.supervisor.release_key import ReleaseKey

pytestmark = [
    pytest.mark.programs,
    pytest.mark.needs("ssh", "sshd"),
    pytest.mark.slow("two whole appliances that are upgraded"),
]

_SESSIONS: Final = 50
_PATIENT: Final = ("--timeout", "300")
_UNSIGNED: Final = (*_PATIENT, "--unsigned")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Amount:
    """Sessions, and new connections a second, on both nodes together."""

    sessions: int
    rate: float


_LOAD: Final = (
    _Amount(sessions=500, rate=300.0) if os.environ.get("E2E_FULL") else _Amount(sessions=100, rate=60.0)
)

_INSTALLS: Final = """
echo "$*" >>{log}
if [ "$1" = upgrade ]; then cat >{log}.archive; {before}; exec {newer} upgrade; fi
exec $REAL "$@"
"""


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Fleet]:
    """Run two appliances, whose servers are up."""
    with fleet(tmp_path) as running:
        wait_until(lambda: running.command("status", check=False).returncode == 0, what="all is well")
        yield running


class Upgradable:
    """A newer release for both nodes, and what each was asked to do."""

    def __init__(self, pair: Fleet) -> None:
        self.pair = pair
        self.newer = Release(pair.folder / "newer", "9.9.9")
        self.archive = pair.folder / "lb-appliance-9.9.9.tar.gz"
        self.archive.write_bytes(bytes(range(256)) * 4096)
        for name in pair.nodes:
            self.prepare(name)

    def prepare(self, name: str, before: str = ":") -> None:
        """Have a node do something before it upgrades."""
        text = _INSTALLS.format(log=self.log(name), newer=self.newer.script(), before=before)
        self.pair.replace_command(name, text)

    def log(self, name: str) -> Path:
        """Return where a node writes what it was asked."""
        return self.pair.folder / f"{name}.log"

    def asked(self, name: str) -> list[str]:
        """Return what a node was asked to do, without looks."""
        lines = self.log(name).read_text().splitlines() if self.log(name).exists() else []
        return [each for each in lines if not each.startswith("status")]

    def adopt(self, name: str) -> None:
        """Have the supervisord that is in charge now be the one that is stopped at the end."""
        node = self.pair.nodes[name]
        pid = int((node.paths.runtime / "supervisord.pid").read_text())
        if pid != node.pid:
            node.process.wait(60)
            node.process = NotOurChild(pid)


def answered(session: socket.socket) -> bytes:
    """Return what the server answers in a session."""
    session.sendall(b"line still\n")
    found = b""
    while not found.endswith(b"\n"):
        chunk = session.recv(100)
        assert chunk, "the session has ended"
        found += chunk
    return found


@pytest.mark.promise("docs/fleet.md", "an upgrade takes one node after another")
def test_one_after_another(pair: Fleet):
    """Each leaves, has the whole archive, is upgraded and takes part again; a second time nothing is done.

    No session of either ends.
    """
    made = Upgradable(pair)
    sessions = [
        socket.create_connection(("127.0.0.1", port), timeout=60.0)
        for port in pair.ports.values()
        for _ in range(_SESSIONS)
    ]
    assert {answered(each) for each in sessions} == {b"master-0 still\n"}
    done = pair.command("upgrade", str(made.archive), *_UNSIGNED, check=False)
    for name in pair.nodes:
        made.adopt(name)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Done: lb-0, lb-1.\n"
    assert {answered(each) for each in sessions} == {b"master-0 still\n"}
    for each in sessions:
        each.close()
    checksum = hashlib.sha256(made.archive.read_bytes()).hexdigest()
    for name in pair.nodes:
        assert made.asked(name) == ["leave --if-kept", f"upgrade - --sha256 {checksum} --unsigned", "reload"]
        assert Path(f"{made.log(name)}.archive").read_bytes() == made.archive.read_bytes()
    versions = [each["version"] for each in pair.answer("status")["nodes"]]  # type: ignore[attr-defined]  # JSON
    assert versions == ["9.9.9", "9.9.9"]
    again = pair.answer("upgrade", str(made.archive), *_UNSIGNED)
    assert again == {"ok": True, "done": [], "left": [], "trouble": None}


@pytest.mark.promise("docs/fleet.md", "an upgrade ends no session and refuses no connection")
def test_an_upgrade_under_load(pair: Fleet):
    """New connections all the time and open sessions, on both nodes: none is refused, and none ends."""
    made = Upgradable(pair)
    with contextlib.ExitStack() as stack:
        loads = [
            stack.enter_context(Load(port=port, sessions=_LOAD.sessions // 2, rate=_LOAD.rate / 2))
            for port in pair.ports.values()
        ]
        for each in loads:
            each.wait_for_sessions()
        done = pair.command("upgrade", str(made.archive), *_UNSIGNED, check=False)
        for name in pair.nodes:
            made.adopt(name)
        assert done.returncode == 0, done.stderr
        assert done.stdout == "Done: lb-0, lb-1.\n"
        reports = [each.report() for each in loads]
        assert [each.failures for each in reports] == [{}, {}]
        assert [each.ended for each in reports] == [[], []]
        assert [len(each.living) for each in reports] == [_LOAD.sessions // 2] * 2
        assert all(each.completed > _LOAD.rate for each in reports)


def test_nodes_get_the_signature_with_the_archive(pair: Fleet, tmp_path: Path):
    """It is verified before the first node leaves, and each node verifies it again."""
    made, key = Upgradable(pair), ReleaseKey(tmp_path / "key")
    administrator = Release(pair.folder / "administrator", "9.9.8")
    (administrator.root / "config" / "release-signers").write_text(key.line)

    def upgrade() -> "subprocess.CompletedProcess[str]":
        command = [administrator.script(), "fleet", "upgrade", str(made.archive), *_PATIENT]
        return subprocess.run(
            command, env=pair.environment, capture_output=True, text=True, check=False, timeout=600
        )

    refused = upgrade()
    assert (refused.returncode, "it is not signed" in refused.stderr) == (1, True), refused.stderr
    assert made.asked("lb-0") == []
    signature = key.sign(made.archive).read_bytes()
    done = upgrade()
    for name in pair.nodes:
        made.adopt(name)
    assert done.returncode == 0, done.stderr
    for name in pair.nodes:
        sent = Path(f"{made.log(name)}.archive").read_bytes()
        assert sent == signature + made.archive.read_bytes()
        assert "--unsigned" not in made.asked(name)[1]


def test_it_stops_at_the_first_that_fails(pair: Fleet):
    """The next one is not touched, and the one that failed takes part again."""
    made = Upgradable(pair)
    made.prepare("lb-0", "echo 'Error: no room' >&2; exit 1")
    found = pair.answer("upgrade", str(made.archive), *_UNSIGNED)
    assert found == {"ok": False, "done": [], "left": ["lb-1"], "trouble": "lb-0: no room"}
    assert [each.split()[0] for each in made.asked("lb-0")] == ["leave", "upgrade", "reload"]
    assert made.asked("lb-1") == []


def test_it_begins_only_if_all_answer(pair: Fleet):
    """One that is down may be missed by the other: nothing is changed."""
    made = Upgradable(pair)
    with pair.unreachable("lb-1"):
        done = pair.command("upgrade", str(made.archive), *_UNSIGNED, check=False)
    assert done.returncode == 1
    assert "nothing was changed: lb-1: ssh: connect" in done.stderr
    assert made.asked("lb-0") == []


@pytest.mark.promise("docs/fleet.md", "a node finishes its turn")
def test_a_node_finishes_its_turn_after_an_interruption(pair: Fleet):
    """Ctrl-C while lb-0 is upgraded: it takes part again by itself, and lb-1 is not begun."""
    made = Upgradable(pair)
    go_on = pair.folder / "go-on"
    made.prepare("lb-0", f"while [ ! -e {go_on} ]; do sleep 0.1; done")
    with pair.started("upgrade", str(made.archive), *_UNSIGNED) as process:
        wait_until(lambda: len(made.asked("lb-0")) == 2, what="it is being upgraded", timeout=60.0)
        wait_until(
            lambda: Path(f"{made.log('lb-0')}.archive").read_bytes() == made.archive.read_bytes(),
            what="the archive has arrived",
        )
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode == 130
    go_on.touch()
    wait_until(lambda: made.asked("lb-0")[-1] == "reload", what="it takes part again", timeout=120.0)
    made.adopt("lb-0")
    assert made.asked("lb-1") == []
    wait_until(lambda: pair.nodes["lb-0"].status()["version"] == "9.9.9", what="it is upgraded")


def test_every_node_s_archive_is_fetched(pair: Fleet):
    """Each is whole and of that node; one that is down is named, with the exit status 1."""
    place = pair.folder / "ticket"
    with pair.unreachable("lb-1"):
        done = pair.command("support", str(place), "--json", check=False)
    assert done.returncode == 1
    first, second = json.loads(done.stdout)["nodes"]
    assert (first["file"], second["file"]) == (str(place / "lb-0.tar.gz"), None)
    with tarfile.open(first["file"]) as archive:
        names = [Path(each).name for each in archive.getnames()]
    assert {"parts.json", "status.json"} <= set(names)
    assert (place / "lb-0.tar.gz").stat().st_mode & 0o777 == 0o600
