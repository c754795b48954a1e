"""How often `stats` looks at the boards of workers and checks."""

import threading
import time
from pathlib import Path

import gevent
import pytest
import structlog

from appliance.model.paths import Paths
from appliance.stats import figures
from appliance.stats.figures import FIRST_LOOK, HistoryFile, LatestFigures

pytestmark = pytest.mark.sockets


@pytest.mark.parametrize(("cost", "pause"), [(0.001, 1.0), (0.6, 3.0), (60.0, 10.0)])
def test_looks_take_a_fifth_of_a_processor_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cost: float, pause: float
):
    """One a second where they are little work; with many servers fewer, but one in ten seconds.

    The first look waits until others have started.
    """
    spent, slept = [0.0], []
    asleep = gevent.event.Event()

    def sleep(seconds: float) -> None:
        if gevent.getcurrent() is looking._loop:  # and not that of another test
            slept.append(seconds)
            if len(slept) == 1:
                return  # until the first look
            asleep.set()
        gevent.get_hub().switch()

    def look(which: LatestFigures, _counted: object) -> None:
        if which is looking:
            spent[0] += cost

    monkeypatch.setattr(LatestFigures, "_look_at_boards", look)
    monkeypatch.setattr(figures.gevent, "sleep", sleep)
    monkeypatch.setattr(figures, "until_next", lambda seconds: seconds)
    monkeypatch.setattr(time, "process_time", lambda: spent[0])
    paths = Paths(runtime=tmp_path, state=tmp_path)
    looking = LatestFigures(paths, HistoryFile(paths.history, structlog.get_logger()), on_fault=print)
    assert asleep.wait(20)
    looking.close()
    assert slept == [FIRST_LOOK, pytest.approx(pause)]


def test_the_loop_goes_on_while_a_page_is_made(tmp_path: Path):
    """The watchdog kills who shows no life for ten seconds, and a page of 40,000 servers may take that."""
    paths = Paths(runtime=tmp_path, state=tmp_path)
    latest = LatestFigures(paths, HistoryFile(paths.history, structlog.get_logger()), on_fault=print)
    turns = threading.Event()

    def make(_: figures.Figures) -> bytes:
        return b"made" if turns.wait(20) else b"alone"

    pages = [gevent.spawn(latest.page, "x", make) for _ in range(2)]
    gevent.spawn_later(0.05, turns.set)
    assert [each.get() for each in pages] == [b"made", b"made"]
    with pytest.raises(ZeroDivisionError):
        latest.page("y", lambda _: bytes(1 // 0))
    latest.close()
