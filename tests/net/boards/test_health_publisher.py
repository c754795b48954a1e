"""The health board is written at once for a change, soon for fresh results, and only as often as it must."""

import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import gevent
import pytest
from support.processes.greenlets import until
from support.values import snapshots

from appliance.core.checks.check_outcome import CheckOutcome
from appliance.core.checks.checked_servers import CheckedServers, Key
from appliance.core.checks.health_record import record
from appliance.model.check_results import CheckResult
from appliance.model.server_states import HealthVerdict
from appliance.net.boards.board_reader import BoardReader
from appliance.net.boards.board_writer import BoardWriter
from appliance.net.boards.health_publisher import FRESH, PAUSE, RETRY, HealthPublisher, pause
from appliance.wire.boards.health_board import HealthBoard, PoolHealthRecord, ServerHealthRecord, decode

pytestmark = pytest.mark.sockets

PATIENCE = 10.0
CHECK = snapshots.check()
KEYS: list[Key] = [("pool", "a"), ("pool", "b")]
POOLS = (PoolHealthRecord(pool="pool", downs=2, down_seconds=3.5, down_since=7.0),)


class Subject:
    """A publisher of two servers, and a reader of its board."""

    def __init__(self, path: Path) -> None:
        self.checked = CheckedServers(admins={})
        servers = [snapshots.server(name, check=CHECK) for _, name in KEYS]
        self.checked.apply(snapshots.snapshot(pools=[snapshots.pool("pool", servers=servers)]), now=0.0)
        self.described: list[Key] = []
        self.trouble: list[str] = []
        self.faults: list[BaseException | None] = []
        self.publisher = HealthPublisher(
            BoardWriter(path),
            self._describe,
            lambda _now, _wall: POOLS,
            on_trouble=self.trouble.append,
            on_fault=self.faults.append,
        )
        self.reader = BoardReader(path)
        self._first = self.reader.changes

    @property
    def changes(self) -> int:
        """How many changes were published."""
        return self.reader.changes - self._first

    def conclude(self, key: Key) -> None:
        """Let a check of a server pass."""
        health = self.checked.servers[key].health
        health.check_ended(CheckOutcome(result=CheckResult.L4OK), started=1.0, now=1.0)

    def board(self) -> HealthBoard:
        """Return what is published."""
        return decode(self.reader.read())

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Give the publisher its turns until the condition holds."""
        until(condition, timeout=PATIENCE)

    def grow(self, count: int) -> list[Key]:
        """Publish many servers, which need a larger file."""
        servers = [snapshots.server(f"server-{index}", check=CHECK) for index in range(count)]
        self.checked.apply(snapshots.snapshot(pools=[snapshots.pool("pool", servers=servers)]), now=0.0)
        self.publisher.replace(self.checked.servers, snapshot=4)
        return list(self.checked.servers)

    def _describe(self, key: Key, now: float, wall: float) -> ServerHealthRecord:
        self.described.append(key)
        return record(self.checked.servers[key], now=now, wall=wall)


@pytest.fixture
def subject(tmp_path: Path) -> Iterator[Subject]:
    """Publisher whose first board is out."""
    made = Subject(tmp_path / "health.board")
    made.publisher.replace(KEYS, snapshot=3)
    made.wait_for(lambda: made.reader.sequence > 1)
    yield made
    made.publisher.close()
    made.reader.close()


def test_all_servers_are_published_in_order(subject: Subject):
    """A new set of servers is a change, with the number of its snapshot."""
    board = subject.board()
    assert (board.snapshot, [server.server for server in board.servers]) == (3, ["a", "b"])
    assert board.pools == POOLS
    assert subject.changes == 1


def test_servers_that_are_kept_are_not_described_again(subject: Subject):
    """A reload that changes one server of many costs what it changes."""
    before = len(subject.described)
    subject.publisher.replace(KEYS, kept=KEYS[:1], snapshot=4)
    subject.wait_for(lambda: subject.changes == 2)
    assert subject.described[before:] == [KEYS[1]]
    assert [each.server for each in subject.board().servers] == ["a", "b"]


def test_what_was_to_be_published_of_a_kept_server_is(subject: Subject):
    """A verdict of the moment of a reload is not lost."""
    subject.conclude(KEYS[0])
    subject.publisher.touch(KEYS[0], changed=True)
    subject.publisher.replace(KEYS, kept=KEYS, snapshot=4)
    subject.wait_for(lambda: subject.board().snapshot == 4)
    assert subject.board().servers[0].verdict is HealthVerdict.UP


def test_no_servers_are_a_board_too(subject: Subject):
    """A configuration without pools is published, empty."""
    subject.publisher.replace([], snapshot=4)
    subject.wait_for(lambda: subject.changes == 2)
    assert (subject.board().snapshot, subject.board().servers) == (4, ())


def test_a_change_is_published_and_counted(subject: Subject):
    """A verdict is out, as a change, before any fresh result would be."""
    subject.conclude(KEYS[1])
    subject.publisher.touch(KEYS[1], changed=True)
    subject.wait_for(lambda: subject.changes == 2)
    assert subject.board().servers[1].verdict is HealthVerdict.UP


def test_fresh_results_are_no_change(subject: Subject):
    """They are published together, only the servers touched are described anew, and `changes` stays."""
    before = len(subject.described)
    sequence = subject.reader.sequence
    for _ in range(100):
        subject.publisher.touch(KEYS[0], changed=False)
    subject.wait_for(lambda: subject.reader.sequence > sequence)
    assert subject.described[before:] == [KEYS[0]]
    assert subject.changes == 1


def test_changes_in_one_turn_are_one_publish(subject: Subject):
    """A hundred verdicts of one moment are one board, not a hundred."""
    sequence = subject.reader.sequence
    for _ in range(100):
        subject.publisher.touch(KEYS[0], changed=True)
    subject.wait_for(lambda: subject.changes > 1)
    assert subject.reader.sequence <= sequence + 4


def test_what_is_outstanding_is_published_at_the_end(tmp_path: Path):
    """A verdict of the last moment is not lost by an orderly end; servers that are gone are passed over."""
    made = Subject(tmp_path / "health.board")
    made.publisher.replace(KEYS[:1], snapshot=5)
    made.publisher.touch(("pool", "gone"), changed=True)
    made.publisher.close()
    assert [server.server for server in made.board().servers] == ["a"]
    made.reader.close()


def test_fresh_results_wait_no_longer_than_they_may():
    """An operator who watches sees results of this second."""
    assert FRESH < 1.0


def test_many_servers_are_published_less_often(subject: Subject, monkeypatch: pytest.MonkeyPatch):
    """A thousand are known to workers at once; beyond that the pause grows as what they have to read."""
    assert [pause(0), pause(1000), pause(40_000)] == [PAUSE, PAUSE, 40 * PAUSE]
    asked: list[int] = []

    def noted(servers: int) -> float:
        asked.append(servers)
        return PAUSE

    monkeypatch.setattr("appliance.net.boards.health_publisher.pause", noted)
    subject.publisher.touch(KEYS[0], changed=True)
    until(lambda: bool(asked), timeout=PATIENCE)
    assert asked[0] == len(KEYS)


def test_a_board_that_cannot_grow_is_written_later(subject: Subject):
    """Readers keep the last board, the reason is said once, and then everything is published as a change."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before, changes = subject.board(), subject.changes
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        keys = subject.grow(100)
        subject.wait_for(lambda: bool(subject.trouble))
        gevent.sleep(RETRY * 1.5)  # another try or two
        subject.publisher.touch(keys[0], changed=False)
        assert subject.trouble == ["Too many open files"]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert subject.board() == before
    subject.wait_for(lambda: subject.trouble == ["Too many open files", ""])
    assert subject.changes > changes
    assert [server.server for server in subject.board().servers] == [name for _, name in keys]
    assert subject.faults == []


def test_an_end_on_a_full_machine_is_an_end(tmp_path: Path):
    """What cannot be published any more at the end is said, and nothing is raised."""
    made = Subject(tmp_path / "health.board")
    made.grow(100)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        made.publisher.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert made.trouble == ["Too many open files"]
    made.reader.close()


def test_a_bug_in_publishing_is_reported(subject: Subject):
    """A loop that has crashed says so, because its program must not go on without a board."""
    key = ("pool", "a")
    member = subject.checked.servers.pop(key)
    subject.publisher.touch(key, changed=True)
    subject.wait_for(lambda: bool(subject.faults))
    assert isinstance(subject.faults[0], KeyError)
    subject.checked.servers[key] = member
