"""When the board of vrrp is written."""

import time
from pathlib import Path

import pytest

from appliance.net.boards.board_reader import BoardReader
from appliance.net.boards.board_writer import BoardWriter
from appliance.net.boards.vrrp_publisher import VrrpPublisher

pytestmark = pytest.mark.sockets


class Described:
    """What the board is to say, and what was told of trouble."""

    def __init__(self) -> None:
        self.payload = b"first"
        self.troubles: list[str] = []

    def __call__(self) -> bytes:
        """Return the payload."""
        return self.payload


def publisher(path: Path, described: Described) -> VrrpPublisher:
    """Return a publisher of a small board."""
    return VrrpPublisher(BoardWriter(path, capacity=16), described, on_trouble=described.troubles.append)


def test_a_change_is_published_at_once_and_figures_now_and_then(tmp_path: Path):
    """A touch is due immediately and counts as a change; the rest comes by itself and counts as none."""
    path, described = tmp_path / "board", Described()
    made = publisher(path, described)
    assert made.deadline == 0.0
    made.tick(100.0)
    with BoardReader(path) as reader:
        first = reader.changes
        assert reader.read() == b"first"
        assert made.deadline is not None
        assert 100.0 < made.deadline < 101.0
        described.payload = b"second"
        made.tick(made.deadline)
        assert (reader.read(), reader.changes) == (b"second", first)
        made.touch()
        assert made.deadline <= time.monotonic()
        made.tick(102.0)
        assert reader.changes == first + 1
        described.payload = b"last"
        made.close()
        assert reader.read() == b"last"


def test_a_full_file_system_is_told_once(tmp_path: Path):
    """What cannot be written is tried again; the reason is told once, and so is the end of it."""
    directory = tmp_path / "runtime"
    directory.mkdir()
    described = Described()
    made = publisher(directory / "board", described)
    described.payload = b"x" * 100  # a larger file is needed, and there is no place for it
    directory.rename(tmp_path / "away")
    made.tick(1.0)
    made.tick(2.0)
    assert len(described.troubles) == 1
    assert described.troubles[0]
    (tmp_path / "away").rename(directory)
    made.tick(3.0)
    assert described.troubles[1:] == [""]
    with BoardReader(directory / "board") as reader:
        assert (reader.read(), reader.changes > 0) == (b"x" * 100, True)
