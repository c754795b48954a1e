"""The file of the last hours on a real disk: damaged, in the way, gone, not to be written."""

from collections.abc import Callable
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from appliance.stats.figures import HistoryFile
from appliance.wire import history_ring
from appliance.wire.history_ring import FrontendMinute, Minute

pytestmark = pytest.mark.sockets


def minute(number: int) -> Minute:
    """Return a minute."""
    return Minute(number=number, total=FrontendMinute(number, 0, 0, 0))


def history(path: Path) -> HistoryFile:
    """Return the file as `stats` has it."""
    return HistoryFile(path, structlog.get_logger())


def test_minutes_outlive_the_program(tmp_path: Path):
    """The file has its full size from the start, and the next program reads what was written."""
    path = tmp_path / "history.ring"
    file = history(path)
    assert file.load() == ()
    assert path.stat().st_size == history_ring.SIZE
    for number in (7, 8):
        file.write(minute(number))
    assert path.stat().st_size == history_ring.SIZE
    assert history(path).load() == (minute(7), minute(8))
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def _short(path: Path) -> None:
    path.write_bytes(history_ring.empty()[:-1])


def _foreign(path: Path) -> None:
    path.write_bytes(b"x" * history_ring.SIZE)


@pytest.mark.parametrize("spoil", [_short, _foreign, Path.mkdir])
def test_a_damaged_file_is_set_aside(tmp_path: Path, spoil: Callable[[Path], None]):
    """Somebody may want to look at it; a new one is begun."""
    path = tmp_path / "history.ring"
    spoil(path)
    with capture_logs() as lines:
        file = history(path)
        assert file.load() == ()
    file.write(minute(7))
    assert [each["event"] for each in lines] == ["history-damaged"]
    assert (tmp_path / "history.ring.damaged").exists()
    assert history(path).load() == (minute(7),)


def test_a_file_that_somebody_removes(tmp_path: Path):
    """The next minute makes it anew."""
    path = tmp_path / "history.ring"
    file = history(path)
    file.load()
    path.unlink()
    file.write(minute(7))
    assert history(path).load() == (minute(7),)


def test_a_file_that_cannot_be_written(tmp_path: Path):
    """It is said once, and tried again with each minute."""
    path = tmp_path / "missing" / "history.ring"
    with capture_logs() as lines:
        file = history(path)
        assert file.load() == ()
        file.write(minute(7))
    assert file.failure == "No such file or directory"
    assert [each["event"] for each in lines] == ["state-not-kept"]
    path.parent.mkdir()
    file.write(minute(8))
    assert file.failure is None
    assert history(path).load() == (minute(8),)


def test_a_link_is_not_followed(tmp_path: Path):
    """Somebody may have put one there; what it leads to stays as it is."""
    path, other = tmp_path / "history.ring", tmp_path / "other"
    file = history(path)
    file.load()
    path.unlink()
    other.write_bytes(b"mine")
    path.symlink_to(other)
    file.write(minute(7))
    assert file.failure is not None
    assert other.read_bytes() == b"mine"
