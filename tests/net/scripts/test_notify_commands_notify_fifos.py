"""FIFOs that are told of transitions: made, kept open, and never waited for."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.net.scripts.notify_commands import NotifyFifos
from appliance.wire.lines.tracker_lines import CommandEnded, WriteLine

pytestmark = pytest.mark.sockets

LINE = 'INSTANCE "api" MASTER 100'


class Told:
    """The FIFOs, and what was reported of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reports: list[CommandEnded] = []
        self.fifos = NotifyFifos(self.reports.append)

    def write(self, line: str = LINE) -> None:
        """Order a line."""
        self.fifos.write(WriteLine(router="api", path=str(self.path), line=line))

    def read(self) -> str:
        """Return what a reader that comes now finds."""
        reader = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            return os.read(reader, 1 << 20).decode()
        finally:
            os.close(reader)

    def outcomes(self) -> list[str]:
        """Return what was reported."""
        assert {each.words for each in self.reports} <= {(str(self.path),)}
        return [each.outcome for each in self.reports]


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    """A FIFO that is not there yet."""
    subject = Told(tmp_path / "fifo")
    yield subject
    subject.fifos.close()


def test_a_fifo_is_made_and_keeps_its_lines(told: Told):
    """Whoever comes later reads all of them, in order; nobody else may."""
    told.write()
    told.write('INSTANCE "api" BACKUP 100')
    assert stat.S_IMODE(told.path.stat().st_mode) == 0o600
    assert told.read() == f'{LINE}\nINSTANCE "api" BACKUP 100\n'
    assert told.outcomes() == []


def test_a_fifo_that_was_made_anew_is_opened_again(told: Told):
    """The reader that made it gets the next line; without one it is made again."""
    told.write()
    told.path.unlink()
    os.mkfifo(told.path)
    told.write("second")
    assert told.read() == "second\n"
    told.path.unlink()
    told.write("third")
    assert (told.read(), told.outcomes()) == ("third\n", [])


def test_a_full_fifo_is_not_waited_for(told: Told):
    """What comes then is lost, and reported."""
    while not told.reports:
        told.write("x" * 1000)
    assert told.outcomes() == ["not written: it has no reader, and is full"]
    assert told.read().startswith("xxx")
    told.write()
    assert len(told.reports) == 1


@pytest.mark.parametrize("kind", ["file", "link", "directory", "nowhere"])
def test_what_is_no_fifo_is_left_alone(told: Told, kind: str):
    """Nothing is written to it, and the report says why."""
    if kind == "file":
        told.path.write_text("mine")
    elif kind == "link":
        other = told.path.with_name("other")
        os.mkfifo(other)
        told.path.symlink_to(other)
    elif kind == "directory":
        told.path.mkdir()
    else:
        told.path = told.path / "below" / "fifo"
    told.write()
    (outcome,) = told.outcomes()
    assert outcome.startswith("not written: ")
    assert kind != "file" or (outcome, told.path.read_text()) == ("not written: it is no FIFO", "mine")
