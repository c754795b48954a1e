"""Events are published on boards in shared memory, and read from them once each."""

import stat
from pathlib import Path

import pytest

from appliance.model.operator_events import EventKind, OperatorEvent
from appliance.net.events.event_board import EventBoard
from appliance.net.events.event_follower import EventFollower, published

pytestmark = pytest.mark.sockets


def event(subject: str, when: float = 1.0) -> OperatorEvent:
    """Return an event that is about `subject`."""
    return OperatorEvent(when=when, kind=EventKind.SERVER_DOWN, subject=subject)


def subjects(events: list[OperatorEvent]) -> list[str]:
    """Return whom events are about."""
    return [each.subject for each in events]


def test_each_event_is_read_once_and_in_the_order_of_time(tmp_path: Path):
    """Two programs tell; a follower gets what is new at each look, with the program's name and an id."""
    health, vrrp = (EventBoard(tmp_path / f"{name}.events", name) for name in ("health", "vrrp"))
    follower = EventFollower(tmp_path)
    assert follower.new(0.0) == []
    health(event("b", 2.0))
    vrrp(event("a", 1.0))
    found = follower.new(5.0)
    assert [(each.program, each.subject) for each in found] == [("vrrp", "a"), ("health", "b")]
    assert len({each.id for each in found} - {""}) == 2
    assert follower.new(5.0) == []
    health(event("c"))
    assert subjects(follower.new(5.1)) == ["c"]
    follower.close()


def test_a_program_that_starts_again_goes_on_with_its_board(tmp_path: Path):
    """What the one before it published is not lost, and not published again."""
    path = tmp_path / "health.events"
    EventBoard(path, "health")(event("before"))
    follower = EventFollower(tmp_path)
    assert subjects(follower.new(0.0)) == ["before"]
    EventBoard(path, "health")(event("after"))
    assert subjects(follower.new(5.0)) == ["after"]
    assert subjects(published(tmp_path)) == ["before", "after"]
    follower.close()


def test_what_was_kept_before_is_not_new(tmp_path: Path):
    """A follower that is published which ids are known leaves them out."""
    board = EventBoard(tmp_path / "health.events", "health")
    board(event("old"))
    known = {each.id for each in published(tmp_path)}
    board(event("new"))
    assert subjects(EventFollower(tmp_path, known=known).new(0.0)) == ["new"]


def test_a_flood_keeps_the_newest(tmp_path: Path):
    """A board has room for some hundred events; the newest stay."""
    board = EventBoard(tmp_path / "health.events", "health")
    for number in range(1000):
        board(event(f"s{number}", number))
    found = subjects(published(tmp_path))
    assert found[-1] == "s999"
    assert 300 <= len(found) <= 400
    EventBoard(tmp_path / "health.events", "health")(event("next", 1001.0))
    assert subjects(published(tmp_path))[-2:] == ["s999", "next"]
    board.close(unlink=True)
    assert published(tmp_path) == []


def test_a_damaged_board_costs_nobody_else_anything(tmp_path: Path):
    """What is no board is passed over, by readers and by its program, which makes it anew."""
    (tmp_path / "vrrp.events").write_bytes(b"nonsense")
    (tmp_path / "reload.events").mkdir()
    EventBoard(tmp_path / "health.events", "health")(event("a"))
    follower = EventFollower(tmp_path)
    assert subjects(follower.new(0.0)) == ["a"]
    EventBoard(tmp_path / "vrrp.events", "vrrp")(event("b"))
    assert subjects(follower.new(5.0)) == ["b"]
    (tmp_path / "vrrp.events").unlink()
    assert follower.new(10.0) == []
    follower.close()


def test_no_directory_is_no_trouble_for_who_tells(tmp_path: Path):
    """Where the board cannot be made the program goes on, and tells it once there is room."""
    place = tmp_path / "gone"
    board = EventBoard(place / "health.events", "health")
    board(event("a"))
    place.mkdir()
    board(event("b"))
    assert subjects(published(place)) == ["a", "b"]


def test_event_that_has_an_id_keeps_it(tmp_path: Path):
    """What is published again after a restart is the same event."""
    follower = EventFollower(tmp_path)
    board = EventBoard(tmp_path / "reload.events", "reload")
    again = OperatorEvent(when=1.0, kind=EventKind.LAST_GOOD, subject="configuration", id="last-good-1")
    board(again)
    assert [each.id for each in follower.new(0.0)] == ["last-good-1"]
    board(again)
    assert follower.new(1.0) == []
    assert subjects(published(tmp_path)) == ["configuration", "configuration"]


def test_a_board_need_not_be_mapped(tmp_path: Path):
    """Who must not die of a file that somebody cuts short never maps it; what is there is kept."""
    path = tmp_path / "supervisor.events"
    board = EventBoard(path, "supervisor", mapped=False)
    follower = EventFollower(tmp_path)
    board(event("a"))
    assert subjects(follower.new(0.0)) == ["a"]
    board(event("b"))
    assert subjects(follower.new(5.0)) == ["b"]
    path.write_bytes(b"cut")
    board(event("c"))
    assert subjects(published(tmp_path)) == ["a", "b", "c"]
    follower.close()
    long = "x" * 100
    for _ in range(200):  # more than fits into its first file
        board(event(long))
    assert str(path) not in Path("/proc/self/maps").read_text()
    board.close()
    again = EventBoard(path, "supervisor", mapped=False)
    tmp_path.chmod(0o2750)  # a group is let in since
    again(event("d"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert subjects(published(tmp_path)) == ["a", "b", "c", *[long] * 200, "d"]
    again.close(unlink=True)
    assert not path.exists()
