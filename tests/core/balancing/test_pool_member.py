"""What a worker notes of one server."""

import pytest
from support.values.snapshots import check, server

from appliance.core.balancing.pool_member import PoolMember
from appliance.wire.boards.worker_board import ServerCounters

pytestmark = pytest.mark.pure


def member(*, error_limit: int | None) -> PoolMember:
    """Return a server whose check has this limit, None for one that is not checked."""
    given = None if error_limit is None else check("tcp", error_limit=error_limit)
    config = server("a", check=given)
    return PoolMember(pool="pool", config=config, address=None, limit=0, seed=1, turn=0.0)


@pytest.mark.parametrize(
    ("error_limit", "told"),
    [(1, [True] * 4), (2, [False, True, False, True]), (0, [False] * 4), (None, [False] * 4)],
)
def test_so_many_errors_in_a_row_are_told(error_limit: int | None, told: list[bool]):
    """Counting begins anew each time; without a limit or a check there is nothing to ask for."""
    subject = member(error_limit=error_limit)
    assert [subject.count_error() for _ in range(4)] == told


def test_times_are_summed_and_the_longest_is_kept():
    """Of queues and connects when the connect is made, of sessions at their end."""
    subject = member(error_limit=None)
    for queued, seconds in ((0.5, 0.25), (0.25, 0.5)):
        subject.count_connect(queued, seconds)
    for seconds in (3.0, 2.0):
        subject.count_end(seconds)
    found = subject.counters()

    assert (found.connected, found.queue_seconds, found.connect_seconds) == (2, 0.75, 0.75)
    assert (found.longest_queue, found.longest_connect) == (0.5, 0.5)
    assert (found.ended, found.session_seconds, found.longest_session) == (2, 5.0, 3.0)


COUNTS = ("total", "current", "queued", "failed", "ended", "bytes_in", "bytes_out")


@pytest.mark.parametrize("counter", COUNTS)
def test_a_server_is_counted_from_its_first_connection_on(counter: str):
    """Before, it is not on the worker's board."""
    subject = member(error_limit=None)
    assert not subject.is_counted
    setattr(subject, counter, 1)
    assert subject.is_counted


def test_what_the_board_shows_of_a_server():
    """Its counters carry its pool and its name."""
    subject = member(error_limit=None)
    subject.current, subject.total, subject.failed, subject.queued = 1, 2, 3, 4
    subject.bytes_in, subject.bytes_out = 5, 6
    assert subject.counters() == ServerCounters(
        pool="pool", server="a", current=1, total=2, failed=3, queued=4, bytes_in=5, bytes_out=6
    )
