"""Files give their number."""

import os
import threading
from pathlib import Path

import gevent
import pytest
from gevent.threadpool import ThreadPool
from support.processes.greenlets import until

from appliance.net.tracking.file import FileTrack
from appliance.net.tracking.track_check import LookResult, TrackUnknown

pytestmark = pytest.mark.sockets

ENOUGH = 10.0


def look(path: Path, *, weighted: bool = True) -> LookResult:
    """Return what a file says."""
    return FileTrack(str(path), weighted=weighted, timeout=ENOUGH).look()


@pytest.mark.parametrize(("text", "value"), [("7", 7), (" -12\n", -12), ("+3\n\n", 3), ("0", 0)])
def test_a_number_is_its_value(text: str, value: int, tmp_path: Path):
    """With a weight every number is up: it is the priority that it changes."""
    file = tmp_path / "number"
    file.write_text(text)
    assert look(file) == LookResult(up=True, value=value, detail=f"the number is {value}")


@pytest.mark.parametrize(("text", "up"), [("0", True), ("1", False), ("-1", False)])
def test_without_a_weight_a_number_is_a_failure(*, text: str, up: bool, tmp_path: Path):
    """keepalived: weight 0, and any other number than 0 is a failure."""
    file = tmp_path / "number"
    file.write_text(text)
    assert look(file, weighted=False).up is up


def test_empty_or_missing_is_0(tmp_path: Path):
    """Nobody has written a number yet."""
    empty = tmp_path / "empty"
    empty.write_text("\n")
    for path in (empty, tmp_path / "missing", empty / "below"):
        assert look(path, weighted=False) == LookResult(up=True, detail="no number, which is 0")


@pytest.mark.parametrize("text", ["up", "1.5", "1_000", "0x10", "1 2", "99999999999", "9" * 100, "\u0663"])
def test_what_is_no_number_is_down(text: str, tmp_path: Path):
    """The detail shows what is there instead."""
    file = tmp_path / "number"
    file.write_text(text)
    seen = look(file)
    assert (seen.up, seen.value) == (False, 0)
    assert seen.detail.startswith(f"not a number: '{text[:8]}")


def test_what_cannot_be_read_is_down(tmp_path: Path):
    """A directory has no number."""
    assert look(tmp_path) == LookResult(up=False, detail="cannot be read: not a regular file")
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert not look(loop).up


def test_what_is_not_there_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    """A file that is missing or cannot be read is a state, told at every look by its detail alone."""
    look(tmp_path / "missing")
    look(tmp_path)
    assert capfd.readouterr().err == ""


def test_a_pipe_does_not_hold_us(tmp_path: Path):
    """Nobody writes to it, and nobody waits for that."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert look(pipe) == LookResult(up=False, detail="cannot be read: not a regular file")


def test_a_file_system_that_hangs_is_down_and_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The look ends in time, greenlets go on meanwhile, and one thread waits, not one for each look."""
    file = tmp_path / "number"
    file.write_text("5")
    answers, opened, real = threading.Event(), [], os.open

    def hang(path: str, *arguments: int, **named: int) -> int:
        if path == str(file):  # threads that an earlier test has left open files, too
            opened.append(path)
            answers.wait(ENOUGH)
        return real(path, *arguments, **named)

    monkeypatch.setattr(os, "open", hang)
    track = FileTrack(str(file), weighted=True, timeout=0.05)
    ticks = gevent.spawn(lambda: [gevent.sleep(0) for _ in range(10)])
    assert track.look() == LookResult(up=False, detail="not read within 0.05 s")
    assert ticks.ready()
    assert not track.look().up
    assert len(opened) == 1
    answers.set()
    until(lambda: track.look().value == 5, what="the number is read")


def test_a_machine_without_threads_has_not_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """That says nothing about the file: what was known of it stays true."""

    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(ThreadPool, "spawn", refuse)
    with pytest.raises(TrackUnknown, match="can't start new thread"):
        look(tmp_path / "number")
