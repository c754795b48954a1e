"""Events are kept in a file of limited size, whatever becomes of it."""

import os
import resource
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import gevent
import pytest
import structlog
from support.processes.waiting import wait_until

from appliance.model.operator_events import EventKind, OperatorEvent
from appliance.model.paths import Paths
from appliance.net.events.event_board import EventBoard
from appliance.net.events.event_file import EventFile, older, tail
from appliance.net.events.event_keeper import EventKeeper
from appliance.net.events.kept_events import events_since

pytestmark = pytest.mark.sockets


def event(number: int) -> OperatorEvent:
    """Return the event of a number, which is its second too."""
    return OperatorEvent(when=float(number), kind=EventKind.SERVER_UP, subject=f"s{number}", id=f"{number}")


def numbers(events: list[OperatorEvent]) -> list[int]:
    """Return the numbers of events."""
    return [int(each.when) for each in events]


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """Return places with a runtime and a state directory."""
    made = Paths(config=tmp_path / "c", runtime=tmp_path / "run", state=tmp_path / "state")
    for each in (made.runtime, made.state):
        each.mkdir()
    return made


def test_the_newest_stay_when_the_file_is_full(paths: Paths):
    """Two parts take turns, so that a limit holds and there is always a history."""
    file = EventFile(paths.events, part=2000)
    for number in range(100):
        file.append([event(number)])
    found = numbers(tail(paths.events))
    assert found == list(range(found[0], 100))
    assert len(found) >= 10
    sizes = [each.stat().st_size for each in (paths.events, older(paths.events)) if each.exists()]
    assert sum(sizes) <= 4000


def test_a_line_that_was_cut_costs_that_event_alone(paths: Paths):
    """A kill in the middle of a write leaves half a line; the next one begins anew."""
    file = EventFile(paths.events)
    file.append([event(1), event(2)])
    with paths.events.open("r+b") as written:
        written.truncate(paths.events.stat().st_size - 9)
    file.append([event(3)])
    assert numbers(tail(paths.events)) == [1, 3]


def test_a_tail_is_bounded(paths: Paths):
    """Of a long file only the end is read, from a whole line on."""
    EventFile(paths.events).append(map(event, range(1, 1000)))
    assert 0 < len(tail(paths.events, limit=1000)) < 20
    assert numbers(tail(paths.events, limit=1000))[-1] == 999


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_is_set_aside(paths: Paths, make: Callable[[Path], None]):
    """A directory or a FIFO at the path is renamed, and stops nobody who reads or writes."""
    make(paths.events)
    assert tail(paths.events) == []
    EventFile(paths.events).append([event(1)])
    assert numbers(tail(paths.events)) == [1]


def test_a_directory_in_the_place_of_the_older_part_is_set_aside(paths: Paths):
    """The parts take turns all the same."""
    older(paths.events).mkdir()
    EventFile(paths.events, part=1).append([event(1)])
    assert older(paths.events).is_file()
    assert numbers(tail(paths.events)) == [1]


def test_parts_that_cannot_take_turns_cost_no_event(paths: Paths, monkeypatch: pytest.MonkeyPatch):
    """What was written is written: nobody writes it again."""

    def refuse(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(Path, "replace", refuse)
    file = EventFile(paths.events, part=1)
    file.append([event(1)])
    file.append([event(2)])
    assert numbers(tail(paths.events)) == [1, 2]


def test_a_full_disk_leaves_whole_lines(paths: Paths):
    """What has no room raises, and the file is as it was."""
    file = EventFile(paths.events)
    file.append([event(1)])
    size = paths.events.stat().st_size
    before, ignored = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, before[1]))
    try:
        with pytest.raises(OSError, match="bytes"):
            file.append([event(2)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert paths.events.stat().st_size == size
    file.append([event(3)])
    assert numbers(tail(paths.events)) == [1, 3]


def test_events_are_collected_and_kept(paths: Paths):
    """What programs tell is in the file soon, once; a keeper that starts again adds what it missed."""
    log, tell = structlog.get_logger(), EventBoard(paths.event_board("health"), "health")
    keeper = EventKeeper(paths, log)
    tell(event(1))
    wait_until(lambda: numbers(tail(paths.events)) == [1], what="the event is kept", sleep=gevent.sleep)
    keeper.close()
    tell(event(2))
    assert numbers(tail(paths.events)) == [1]
    assert numbers(events_since(paths)) == [1, 2]
    keeper = EventKeeper(paths, log)
    wait_until(lambda: numbers(tail(paths.events)) == [1, 2], what="the other one too", sleep=gevent.sleep)
    keeper.close()
    assert numbers(events_since(paths, 2.0)) == [2]
    assert numbers(events_since(paths, limit=1)) == [2]
    assert events_since(paths, limit=0) == []


def test_what_is_told_until_the_end_is_kept(paths: Paths):
    """Programs end before the keeper does, and the runtime directory may go with them."""
    told: list[OperatorEvent] = []
    keeper = EventKeeper(paths, structlog.get_logger(), told.append)
    tell = EventBoard(paths.event_board("announce"), "announce")
    tell(event(1))
    wait_until(lambda: numbers(tail(paths.events)) == [1], what="the first one is kept", sleep=gevent.sleep)
    tell(event(2))
    keeper.close()
    assert numbers(tail(paths.events)) == numbers(told) == [1, 2]


def test_an_end_in_the_middle_of_a_write_writes_nothing_twice(paths: Paths, monkeypatch: pytest.MonkeyPatch):
    """The keeper ends when the thread that writes has ended."""
    begun, go_on, append = threading.Event(), threading.Event(), EventFile.append

    def slow(file: EventFile, events: list[OperatorEvent]) -> None:
        begun.set()
        assert go_on.wait(20)
        append(file, events)

    monkeypatch.setattr(EventFile, "append", slow)
    EventBoard(paths.event_board("health"), "health")(event(1))
    keeper = EventKeeper(paths, structlog.get_logger())
    wait_until(begun.is_set, what="it writes", sleep=gevent.sleep)
    closing = gevent.spawn(keeper.close)
    gevent.sleep(0)
    go_on.set()
    closing.join()
    assert numbers(tail(paths.events)) == [1]
    assert len(paths.events.read_text().splitlines()) == 1


@pytest.mark.parametrize(("lost", "new"), [(True, [7]), (False, [5, 7])])
def test_what_the_file_has_lost_is_not_told_again(paths: Paths, *, lost: bool, new: list[int]):
    """An old event stays on the board of a quiet program for longer than in a file that is full twice."""
    tell = EventBoard(paths.event_board("health"), "health")
    for each in (5, 7):
        tell(event(each))
    EventFile(paths.events, part=1 if lost else 1000).append([event(6)])
    told: list[OperatorEvent] = []
    keeper = EventKeeper(paths, structlog.get_logger(), told.append)
    wait_until(lambda: len(tail(paths.events)) == 1 + len(new), what="they are kept", sleep=gevent.sleep)
    tell(event(4))
    wait_until(lambda: len(told) == len(new) + 1, what="a later one is told", sleep=gevent.sleep)
    assert numbers(told) == [*new, 4]
    keeper.close()


def test_a_directory_that_is_gone_is_said_and_made_good(paths: Paths, capfd: pytest.CaptureFixture[str]):
    """Events wait in memory, and are on the boards for readers; the trouble is shown while it lasts."""
    paths.state.rmdir()
    keeper = EventKeeper(paths, structlog.get_logger())
    EventBoard(paths.event_board("health"), "health")(event(1))
    wait_until(lambda: keeper.trouble != "", what="the trouble is known", sleep=gevent.sleep)
    assert "Traceback" not in capfd.readouterr().err
    assert numbers(events_since(paths)) == [1]
    paths.state.mkdir()
    wait_until(lambda: numbers(tail(paths.events)) == [1], what="the event is kept", sleep=gevent.sleep)
    wait_until(lambda: keeper.trouble == "", what="the trouble is over", sleep=gevent.sleep)
    keeper.close()
