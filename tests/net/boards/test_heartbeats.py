"""Heartbeats on a real file system."""

import os
import subprocess
import sys
import time
from pathlib import Path

import gevent
import pytest
from support.processes.waiting import wait_until

from appliance.net.boards import heartbeats
from appliance.net.boards.heartbeats import Heartbeat
from appliance.net.boards.hub_heartbeat import HubHeartbeat
from appliance.net.logging import log

pytestmark = pytest.mark.sockets


def _life(path: Path) -> heartbeats.ProcessHeartbeat:
    life = heartbeats.read(path)
    assert life is not None
    return life


def test_a_beat_is_seen(tmp_path: Path):
    """It says who lives and when its loop went round last."""
    ours = Heartbeat(tmp_path / "a.heartbeat")
    assert ours.trouble is None
    assert (_life(ours.path).pid, _life(ours.path).beat) == (os.getpid(), 0)
    ours.beat(12.5)
    assert _life(ours.path).beat == 12_500_000_000
    assert _life(ours.path).is_alive
    ours.close(unlink=True)
    assert heartbeats.read(ours.path) is None


@pytest.mark.programs
def test_a_number_that_was_used_again_is_not_that_life(tmp_path: Path):
    """A process is known by its number and its start."""
    with subprocess.Popen(["sleep", "60"]) as other:
        life = heartbeats.ProcessHeartbeat(pid=other.pid, started=heartbeats.started(other.pid), beat=0)
        assert life.is_alive
        assert not heartbeats.ProcessHeartbeat(pid=other.pid, started=life.started - 1, beat=0).is_alive
        other.kill()
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
        assert not life.is_alive, "nobody has asked how it ended, but it has"
    assert not life.is_alive
    assert not heartbeats.ProcessHeartbeat(pid=0, started=0, beat=0).is_alive
    Heartbeat(tmp_path / "a").close()


def test_what_was_prepared_is_taken_over(tmp_path: Path):
    """The place is made before the start, forgets the last life, and is used by the next."""
    path = tmp_path / "a.heartbeat"
    Heartbeat(path).close()
    heartbeats.prepare(path)
    assert _life(path).pid == 0
    inode = path.stat().st_ino
    Heartbeat(path).close()
    assert (path.stat().st_ino, _life(path).pid) == (inode, os.getpid())


def test_where_it_cannot_be_written(tmp_path: Path):
    """A program without a place for its heartbeat goes on, and says why nobody sees it."""
    unseen = Heartbeat(tmp_path / "gone" / "a.heartbeat")
    assert unseen.trouble == f"{unseen.path}: No such file or directory"
    unseen.beat(1.0)
    with pytest.raises(OSError, match="No such file"):
        heartbeats.prepare(unseen.path)
    HubHeartbeat(unseen.path, log.configure("test", level="error", form="json")).close()


def test_what_was_removed_is_made_again(tmp_path: Path):
    """With its directory too: some seconds after that is there again the beats are seen again."""
    directory = tmp_path / "run"
    directory.mkdir()
    ours = Heartbeat(directory / "a.heartbeat")
    ours.beat(100.0)
    ours.path.unlink()
    directory.rmdir()
    ours.beat(100.0 + heartbeats.RENEW)
    assert heartbeats.read(ours.path) is None
    directory.mkdir()
    ours.beat(101.0 + heartbeats.RENEW)
    assert heartbeats.read(ours.path) is None
    ours.beat(100.0 + 2 * heartbeats.RENEW)
    assert (_life(ours.path).pid, _life(ours.path).beat) == (os.getpid(), 120_000_000_000)


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 32])
def test_garbage_is_no_heartbeat(tmp_path: Path, content: bytes):
    """What is too short or of another layout is nobody's."""
    path = tmp_path / "a.heartbeat"
    path.write_bytes(content)
    assert heartbeats.read(path) is None
    assert heartbeats.read(tmp_path / "none") is None


def test_a_link_is_not_followed(tmp_path: Path):
    """Whoever could put one there would have us write into another file."""
    path, precious = tmp_path / "a.heartbeat", tmp_path / "precious"
    path.symlink_to(precious)  # to nothing: set aside, as anything that is no file
    assert not Heartbeat(path).trouble
    assert not precious.exists()
    path.unlink()
    precious.write_bytes(b"precious")
    path.symlink_to(precious)
    assert Heartbeat(path).trouble
    assert precious.read_bytes() == b"precious"


def test_a_hub_that_goes_round_beats(tmp_path: Path):
    """It beats by itself, and a greenlet that never gives way stops it."""
    logger = log.configure("test", level="error", form="json")
    path = tmp_path / "a.heartbeat"
    beating = HubHeartbeat(path, logger)
    deadline = time.monotonic() + 15
    while not (first := _life(path).beat):
        assert time.monotonic() < deadline
        gevent.sleep(0.01)
    end = time.monotonic() + 3 * heartbeats.PAUSE
    while time.monotonic() < end:
        pass
    assert _life(path).beat == first
    beating.close()


_STALLS = """
import sys, time
from pathlib import Path
from appliance.net.boards.heartbeats import Heartbeat
Heartbeat(Path(sys.argv[1])).beat(time.monotonic())
time.sleep(60)
"""


@pytest.mark.programs
def test_another_process_is_seen(tmp_path: Path):
    """What counts is what another process reads."""
    path = tmp_path / "a.heartbeat"
    with subprocess.Popen([sys.executable, "-c", _STALLS, path]) as other:
        life = wait_until(lambda: (life := heartbeats.read(path)) and life.beat and life, what="its beat")
        assert (life.pid, life.is_alive) == (other.pid, True)
        other.kill()
    assert not life.is_alive
