"""A pool is up while the health board has a server of it that is up."""

from pathlib import Path

import gevent
import pytest
from support.processes.greenlets import until
from support.values import boards

from appliance.model.server_states import AdminState, HealthVerdict
from appliance.net.boards.board_writer import BoardWriter
from appliance.net.tracking.pool import PoolTrack
from appliance.net.tracking.track_check import LookResult
from appliance.wire.boards.health_board import ServerHealthRecord, encode

pytestmark = pytest.mark.sockets

AGES = 600.0


class Health:
    """The board as `health` writes it."""

    def __init__(self, path: Path) -> None:
        self.board = BoardWriter(path, capacity=64)

    def says(self, *servers: ServerHealthRecord, changed: bool = True) -> None:
        """Publish these servers."""
        self.board.publish(encode(boards.health_board(*servers)), changed=changed)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the board is."""
    return tmp_path / "health.board"


@pytest.fixture
def track(path: Path) -> PoolTrack:
    """Track of the pool `masters`."""
    return PoolTrack("masters", path)


def server(
    verdict: HealthVerdict = HealthVerdict.UP, *, pool: str = "masters", admin: AdminState = AdminState.READY
) -> ServerHealthRecord:
    """Return a server's record."""
    return boards.health(pool=pool, verdict=verdict, admin=admin)


def test_one_server_up_is_enough(path: Path, track: PoolTrack):
    """The others may be down."""
    Health(path).says(server(HealthVerdict.DOWN), server(), server(HealthVerdict.UNKNOWN))
    assert track.look() == LookResult(up=True, detail="1 of 3 servers up")


@pytest.mark.parametrize(
    "record",
    [
        server(HealthVerdict.DOWN),
        server(HealthVerdict.UNKNOWN),
        server(admin=AdminState.MAINT),
        server(admin=AdminState.DRAIN),
    ],
)
def test_without_one_it_is_down(record: ServerHealthRecord, path: Path, track: PoolTrack):
    """A server that takes no new connections does not count, and neither does another pool's."""
    Health(path).says(record, server(pool="workers"))
    assert track.look() == LookResult(up=False, detail="0 of 1 servers up")


def test_an_unknown_pool_is_down(path: Path, track: PoolTrack):
    """Health knows nothing of it, or has not said anything yet."""
    health = Health(path)
    assert track.look() == LookResult(up=False, detail="health has none of its servers")
    health.says(server(pool="workers"))
    assert track.look() == LookResult(up=False, detail="health has none of its servers")


def test_no_board_is_down(path: Path, track: PoolTrack):
    """Nobody checks anything: the detail says what is missing."""
    assert track.look() == LookResult(up=False, detail="there is no health board")
    path.write_bytes(b"nonsense")
    assert track.look().detail.endswith("not a board of this version")


def test_a_board_that_cannot_be_read_holds_nobody_up(path: Path, track: PoolTrack):
    """It is looked at again after the interval, and others get their turn meanwhile."""
    path.write_bytes(b"nonsense")
    assert not track.look().up
    waiting = gevent.spawn(track.wait, AGES)
    gevent.sleep(0.15)
    assert not waiting.ready()
    waiting.kill()


def test_a_change_ends_the_wait(path: Path, track: PoolTrack):
    """A verdict is seen soon, whatever the interval; a mere repetition is not looked at."""
    health = Health(path)
    health.says(server())
    assert track.look().up
    waiting = gevent.spawn(track.wait, AGES)
    health.says(server(), changed=False)
    gevent.sleep(0.15)
    assert not waiting.ready()
    health.says(server(HealthVerdict.DOWN))
    until(waiting.ready, what="the change is seen")
    assert not track.look().up


def test_a_board_that_comes_ends_the_wait(path: Path, track: PoolTrack):
    """Health has been started."""
    assert not track.look().up
    waiting = gevent.spawn(track.wait, AGES)
    gevent.sleep(0)
    Health(path).says(server())
    until(waiting.ready, what="the board is seen")
    until(lambda: track.look().up, what="the server is seen")


def test_a_larger_board_is_followed(path: Path, track: PoolTrack):
    """The board's file is replaced when it grows."""
    health = Health(path)
    health.says(server())
    assert track.look().up
    waiting = gevent.spawn(track.wait, AGES)
    gevent.sleep(0)
    health.says(*[server(HealthVerdict.DOWN)] * 50)
    until(waiting.ready, what="the new file is seen")
    assert track.look().detail == "0 of 50 servers up"


def test_a_board_that_is_gone_is_down_at_the_next_look(path: Path, track: PoolTrack):
    """What is still mapped is not believed for ever."""
    Health(path).says(server())
    assert track.look().up
    path.unlink()
    track.wait(0.0)
    assert not track.look().up
    track.close()
