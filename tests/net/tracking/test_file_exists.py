"""Whether a path exists, alone and as the condition of another check."""

import os
import threading
from pathlib import Path

import pytest
from support.values.snapshots import track

from appliance.model.paths import Paths
from appliance.model.snapshot.virtual_router import TrackKind
from appliance.net.probing.tls_contexts import TlsContexts
from appliance.net.tracking import file
from appliance.net.tracking.check_of_kind import check_of
from appliance.net.tracking.file import ExistsTrack, OnlyWhileExists
from appliance.net.tracking.track_check import LookResult

pytestmark = pytest.mark.sockets

ENOUGH = 10.0


class Other:
    """A check that is up, and counts its looks."""

    def __init__(self) -> None:
        self.looks = 0
        self.waited = 0.0
        self.closed = False

    def look(self) -> LookResult:
        """Look."""
        self.looks += 1
        return LookResult(up=True, detail="well")

    def wait(self, seconds: float) -> None:
        """Note the time, and do not wait."""
        self.waited += seconds

    def close(self) -> None:
        """Note the end."""
        self.closed = True


def test_a_path_of_any_kind_exists(tmp_path: Path):
    """An empty file, a directory and a FIFO that nobody writes to: test(1) `-e`."""
    empty, fifo = tmp_path / "empty", tmp_path / "fifo"
    empty.touch()
    os.mkfifo(fifo)
    for path in (empty, fifo, tmp_path):
        seen = ExistsTrack(str(path), timeout=ENOUGH).look()
        assert seen == LookResult(up=True, detail=f"{path}: exists")


def test_what_is_missing_is_down(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    """So is a link to nothing, a name below a file and one that cannot be; the detail says why."""
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    (tmp_path / "file").touch()
    for name in ("gone", "link", "file/below", "x" * 300):
        seen = ExistsTrack(str(tmp_path / name), timeout=ENOUGH).look()
        assert not seen.up
        assert seen.detail.startswith(f"{tmp_path / name}: ")
    assert capfd.readouterr().err == ""


def test_a_zero_byte_is_no_bug():
    """No such path can be, which is a state."""
    assert not ExistsTrack("/\0", timeout=ENOUGH).look().up


def test_a_file_system_that_hangs_is_down(monkeypatch: pytest.MonkeyPatch):
    """Nobody waits longer than the time-out, and the thread is asked again for the same answer."""
    free, asked = threading.Event(), []

    def hang(path: str) -> str:
        asked.append(path)
        free.wait(ENOUGH)
        return ""

    monkeypatch.setattr(file, "_objection", hang)
    track = ExistsTrack("/far", timeout=0.05)
    assert track.look() == LookResult(up=False, detail="/far: no answer within 0.05 s")
    assert not track.look().up
    free.set()
    late = ExistsTrack("/far", timeout=ENOUGH)
    assert late.look().up
    assert asked == ["/far"] * 2


def test_another_check_counts_while_it_exists(tmp_path: Path):
    """Without the path nobody asks further; with it the other one decides, waits and ends."""
    marker, other = tmp_path / "iptables-rule-exists", Other()
    both = OnlyWhileExists(str(marker), other, timeout=ENOUGH)
    assert not both.look().up
    assert other.looks == 0
    marker.touch()
    assert both.look() == LookResult(up=True, detail="well")
    both.wait(2.0)
    both.close()
    assert (other.looks, other.waited, other.closed) == (1, 2.0, True)


def test_the_check_of_a_track(tmp_path: Path):
    """The kind alone, and the condition beside another kind."""
    marker = tmp_path / "marker"
    paths = Paths(config=tmp_path, runtime=tmp_path, state=tmp_path)
    contexts = TlsContexts()
    alone = check_of(track(kind=TrackKind.EXISTS, target=str(marker)), paths=paths, contexts=contexts)
    other = track(kind=TrackKind.FILE, target="/dev/null", exists=str(marker))
    beside = check_of(other, paths=paths, contexts=contexts)
    assert (alone.look().up, beside.look().detail) == (False, f"{marker}: No such file or directory")
    marker.touch()
    assert (alone.look().up, beside.look().detail) == (True, "cannot be read: not a regular file")
