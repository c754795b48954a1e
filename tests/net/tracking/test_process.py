"""Processes are found by name, and their death is noticed at once."""

import contextlib
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import gevent
import pytest
from support.processes.greenlets import until

from appliance.net.tracking.process import ProcessTrack

pytestmark = pytest.mark.programs

AGES = 600.0


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Copy of `sleep` with a name that nothing else on this machine has."""
    path = tmp_path / f"zzz{time.monotonic_ns() % 10**9:09d}"
    shutil.copy(str(shutil.which("sleep")), path)
    return path


@pytest.fixture
def track(program: Path) -> Iterator[ProcessTrack]:
    """Track of the program's name."""
    subject = ProcessTrack(program.name)
    yield subject
    subject.close()


@contextlib.contextmanager
def running(*words: str, executable: Path | None = None) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a command for as long as the test needs it."""
    with subprocess.Popen(words, executable=executable) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_running_process_is_up(program: Path, track: ProcessTrack):
    """It is found by its name, and its number is told."""
    assert not track.look().up
    assert track.look().detail == f"no process {program.name}"
    with running(str(program), "60") as process:
        until(lambda: track.look().up, what="it is found")
        assert track.look().detail == f"process {process.pid}"


def test_a_process_is_found_by_its_first_word_too(program: Path, track: ProcessTrack):
    """A name of more than 15 characters, say, or an interpreter that was told another name."""
    with running(f"/some/where/{program.name}", "60", executable=Path(str(shutil.which("sleep")))):
        until(lambda: track.look().up, what="it is found")


def test_a_longer_name_is_another_one(program: Path):
    """Names match whole."""
    with running(str(program), "60"):
        until(lambda: ProcessTrack(program.name).look().up, what="it runs")
        assert not ProcessTrack(program.name[:-1]).look().up


def test_a_death_ends_the_wait(program: Path, track: ProcessTrack):
    """Nobody waits for the interval to see it."""
    with running(str(program), "60") as process:
        until(lambda: track.look().up, what="it is found")
        waiting = gevent.spawn(track.wait, AGES)
        gevent.sleep(0)
        process.kill()
        waiting.join(15.0)
        assert waiting.ready()
        assert not track.look().up


def test_a_zombie_is_dead(program: Path, track: ProcessTrack):
    """A process that nobody has waited for does nothing any more."""
    with running(str(program), "60") as process:
        until(lambda: track.look().up, what="it is found")
        process.kill()
        until(lambda: not track.look().up, what="it is not taken for alive")
        assert not ProcessTrack(program.name).look().up


def test_another_one_takes_its_place(program: Path, track: ProcessTrack):
    """A successor that started while the first one ran keeps the track up without a gap."""
    with running(str(program), "60") as first:
        until(lambda: track.look().up, what="the first one is found")
        with running(str(program), "60") as second:
            until(lambda: ProcessTrack(program.name).look().detail.count(",") == 1, what="both run")
            first.kill()
            track.wait(AGES)
            assert track.look().detail == f"process {second.pid}"


def test_a_process_with_another_name_by_now_is_not_it(program: Path, track: ProcessTrack):
    """A shell that has become something else does not count any more."""
    script = f"exec -a {program.name} sh -c 'read line; exec sleep 60'"
    with subprocess.Popen(["bash", "-c", script], stdin=subprocess.PIPE) as process:
        until(lambda: track.look().up, what="it is found")
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
        until(lambda: not track.look().up, what="it is something else")
        process.kill()
