"""Which worker has which claim to which accept queue."""

import pytest

from appliance.core.balancing.accept_queues import CLAIMS, claim, queues
from appliance.model.accept_claims import AcceptClaim

pytestmark = pytest.mark.pure

SOLE, FIRST, EQUAL, SPARE = AcceptClaim


def claims(*, queues: int, workers: int) -> list[list[AcceptClaim | None]]:
    """Return for each queue the claims of all workers."""
    return [
        [claim(queue=queue, queues=queues, worker=worker, workers=workers) for worker in range(workers)]
        for queue in range(queues)
    ]


def test_one_worker_has_every_queue():
    """Alone it takes everything, also from the queues that more workers have left."""
    assert claims(queues=3, workers=1) == [[SOLE]] * 3


def test_a_queue_for_each_worker():
    """Each is first at its own queue, and has a spare claim to the others'."""
    assert claims(queues=2, workers=2) == [[FIRST, SPARE], [SPARE, FIRST]]


def test_fewer_queues_than_workers():
    """Several have the same claim, and every worker has one."""
    assert claims(queues=1, workers=3) == [[EQUAL] * 3]
    assert claims(queues=2, workers=4) == [[EQUAL, SPARE, EQUAL, SPARE], [SPARE, EQUAL, SPARE, EQUAL]]


def test_more_queues_than_workers():
    """What a former, larger number of workers has left is divided among those that are there."""
    assert claims(queues=4, workers=2) == [[FIRST, SPARE], [SPARE, FIRST]] * 2


@pytest.mark.parametrize("workers", [5, 64])
def test_few_have_a_claim(workers: int):
    """Each queue has one that is first, and the same few others, however many workers there are."""
    for watching in claims(queues=workers, workers=workers):
        assert watching.count(FIRST) == 1
        assert watching.count(SPARE) == CLAIMS - 1
        assert watching.count(None) == workers - CLAIMS


@pytest.mark.parametrize(("workers", "addresses", "made"), [(1, 5, 1), (4, 3, 4), (64, 30, 8), (4, 500, 1)])
def test_number_of_queues(workers: int, addresses: int, made: int):
    """One for each worker, fewer where so many addresses would not fit one message, one at least."""
    assert queues(workers=workers, addresses=addresses) == made


def test_a_group_without_addresses():
    """It has nothing to divide by."""
    assert queues(workers=4, addresses=0) == 4
