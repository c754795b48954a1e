"""What ended workers counted: nothing is lost, nothing counted twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.values import boards

from appliance.model.end_reasons import EndReason
from appliance.wire.boards import ended_workers
from appliance.wire.boards.ended_workers import (
    REMOVED,
    EndedWorkers,
    EndedWorkersError,
    identity,
    kept,
    with_ended,
)
from appliance.wire.boards.worker_board import CONNECT_BOUNDS, PoolTimes, WorkerBoard

pytestmark = pytest.mark.pure

CLASSES = len(CONNECT_BOUNDS) + 1


def worker(pid: int, **changes: object) -> WorkerBoard:
    """Return the board of a worker that has served ten connections and has two left."""
    given = {
        "frontends": (boards.frontend_counters("api", current=2, total=10),),
        "servers": (boards.server_counters("m0", pool="masters", current=2, total=10),),
        "reasons": {EndReason.COMPLETED: 8, EndReason.DENIED: 0},
        "pools": (PoolTimes(pool="masters", connects=(1,) * CLASSES),),
    }
    return boards.worker(pid=pid, **given | changes)


def test_what_workers_counted_is_added_up():
    """Sums, and nothing of what there is at a moment."""
    sums = with_ended(with_ended(EndedWorkers(), worker(1, started_at=300.0)), worker(2))
    (api,), (m0,), (times,) = sums.frontends, sums.servers, sums.pools

    assert (sums.workers, sums.since) == (2, 100.0)
    assert (api.total, api.current, api.denied, api.bytes_out) == (20, 0, 2, 800)
    assert (m0.total, m0.current, m0.queued, m0.failed) == (20, 0, 0, 2)
    assert times.connects == (2,) * CLASSES
    assert sums.reasons == {"completed": 16}


def test_nobody_is_counted_twice():
    """A master that was killed between the two steps finds the board again."""
    once = with_ended(EndedWorkers(), worker(1))
    assert with_ended(once, worker(1)) is once
    assert identity(worker(1)) in once.recent


def test_only_the_last_ones_are_named():
    """The file does not grow with the number of workers."""
    sums = EndedWorkers()
    for pid in range(300):
        sums = with_ended(sums, boards.worker(pid=pid))
    assert (sums.workers, len(sums.recent)) == (300, 256)
    assert identity(boards.worker(pid=299)) == sums.recent[-1]


def test_what_is_gone_from_the_configuration_goes():
    """Servers are forgotten; of frontends the sum stays, without their names, also when more are added."""
    gone = boards.frontend_counters("old", total=5), boards.frontend_counters("older", total=3)
    sums = with_ended(EndedWorkers(), worker(1, frontends=gone))
    left = kept(sums, frontends={"api"}, servers=[("other", "m0")])

    assert [(each.name, each.total) for each in left.frontends] == [(REMOVED, 8)]
    assert (left.servers, left.pools) == ((), ())
    again = kept(with_ended(left, worker(2)), frontends={"api"}, servers=[("masters", "m0")])
    assert {each.name: each.total for each in again.frontends} == {REMOVED: 8, "api": 10}
    assert [each.total for each in again.servers] == [10]
    assert [each.pool for each in again.pools] == ["masters"]


@given(st.integers(0, 2**40), st.floats(0, 1e12), st.sampled_from(EndReason))
def test_what_was_encoded_is_decoded(total: int, started_at: float, reason: EndReason):
    """The file comes back as it was written."""
    frontends = (boards.frontend_counters(total=total),)
    sums = with_ended(
        EndedWorkers(), worker(1, frontends=frontends, started_at=started_at, reasons={reason: total})
    )
    assert ended_workers.decode(ended_workers.encode(sums)) == sums


@given(st.binary(max_size=200))
def test_garbage_is_an_error_of_its_own(data: bytes):
    """Nothing else escapes."""
    try:
        ended_workers.decode(data)
    except EndedWorkersError:
        return


def test_a_changed_file_is_noticed():
    """The seal tells."""
    data = ended_workers.encode(with_ended(EndedWorkers(), worker(1)))
    with pytest.raises(EndedWorkersError, match="not what was written"):
        ended_workers.decode(data.replace(b'"workers":1', b'"workers":7'))
