"""API servers are asked again at once as long as there is another one, then later and later."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.core.discovery.retries import FIRST, LONGEST, MOST_RETRY_AFTER, REFUSED, Retries

pytestmark = pytest.mark.pure


class NoRandom(Random):
    """No jitter."""

    def random(self) -> float:
        """Return the least."""
        return 0.0


def test_the_next_server_is_asked_at_once():
    """Only after each of them has failed there is a wait, which grows to its longest."""
    retries = Retries(NoRandom())
    waits = [retries.failed(servers=2) for _ in range(14)]
    assert waits[:6] == [0.0, FIRST, 0.0, 2 * FIRST, 0.0, 4 * FIRST]
    assert waits[-1] == LONGEST
    retries.succeeded()
    assert retries.failed(servers=2) == 0.0
    assert Retries(NoRandom()).failed(servers=1) == FIRST
    assert Retries(NoRandom()).failed(servers=0) == FIRST


def test_a_server_may_say_how_long():
    """Retry-After is obeyed, within reason; a refusal is repeated seldom."""
    retries = Retries(NoRandom())
    assert [retries.after(0.0), retries.after(7.0), retries.after(86400.0)] == [FIRST, 7.0, MOST_RETRY_AFTER]
    assert retries.refused() == REFUSED


@given(st.integers(), st.integers(0, 5), st.integers(1, 60))
def test_waits_are_bounded(seed: int, servers: int, failures: int):
    """However often it fails, no wait is longer than the longest with its jitter."""
    retries = Retries(Random(seed))  # noqa: S311  # it spreads requests
    waits = [retries.failed(servers=servers) for _ in range(failures)]
    assert all(0.0 <= each <= 1.5 * LONGEST for each in waits)
    assert sum(each == 0.0 for each in waits) <= failures - failures // max(1, servers)
