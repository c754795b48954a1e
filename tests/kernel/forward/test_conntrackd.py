"""The process conntrackd: what becomes of one that is missing, does not start, or says nothing sensible."""

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import structlog

from appliance.console.here.machine import sync_lacks
from appliance.forward import conntrackd as module
from appliance.forward.conntrackd import MISSING, Conntrackd, ConntrackdFailed
from appliance.model.loading.loading import load
from appliance.model.paths import Paths

pytestmark = [pytest.mark.kernel, pytest.mark.needs(root=True)]

FILE = """
api: { frontends: { main: { bind: ["10.0.0.200:80"], pool: p, forward: kernel, sync: true } } }
pools: { p: { servers: { s: { address: "10.0.0.34:80" } } } }
virtual_ips: { api: { addresses: [10.0.0.200/24], interface: lo, router_id: 9 } }
"""


@pytest.fixture
def subject(tmp_path: Path) -> Iterator[Conntrackd]:
    """One that has not started anything yet."""
    with closing(Conntrackd(Paths(runtime=tmp_path, state=tmp_path), structlog.get_logger())) as made:
        yield made


def _instead(tmp_path: Path, text: str) -> str:
    program = tmp_path / "program"
    program.write_text(f"#!{sys.executable}\n{text}")
    program.chmod(0o700)
    return str(program)


def test_a_missing_package_is_named(subject: Conntrackd, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """By the program, and by `check --here` at the key that needs it."""
    monkeypatch.setattr(module, "PATHS", str(tmp_path))
    with pytest.raises(ConntrackdFailed, match="apt install conntrackd"):
        subject.run("Sync {}")
    snapshot = load(FILE, source="appliance.yaml", number=1).snapshot
    assert snapshot is not None
    (found,) = sync_lacks(snapshot)
    assert (found.path, found.message) == (("api", "frontends", "main", "sync"), MISSING)


def test_one_that_ends_at_once_is_quoted(
    subject: Conntrackd, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """What it says is the reason, for `status` and the log."""
    program = _instead(tmp_path, "print('syntax error', 'in line 7')")
    monkeypatch.setattr(module, "executable", lambda: program)
    with pytest.raises(ConntrackdFailed, match="does not start: syntax error in line 7"):
        subject.run("Sync {}")


ANSWERS = """
import socket
with socket.socket(socket.AF_UNIX) as listening:
    listening.bind(__file__.replace("program", "conntrackd.ctl"))
    listening.listen()
    while True:
        connection = listening.accept()[0]
        with connection:
            if connection.recv(4):
                connection.sendall(b"nonsense")
"""


def test_one_that_answers_nonsense_is_not_believed(
    subject: Conntrackd, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """It is ended as any other, and the next one starts where it was."""
    program = _instead(tmp_path, ANSWERS)
    monkeypatch.setattr(module, "executable", lambda: program)
    for _ in range(2):
        with pytest.raises(ConntrackdFailed, match="no statistics"):
            subject.run("Sync {}")
        subject.stop()
