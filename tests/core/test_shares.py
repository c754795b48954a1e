"""Limits of a group are divided among its workers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.core.shares import share

pytestmark = pytest.mark.pure


@given(total=st.integers(1, 10_000), workers=st.integers(1, 64))
def test_parts_add_up(total: int, workers: int):
    """The sum is exact, except that each worker may always have one."""
    parts = [share(total, workers=workers, index=index) for index in range(workers)]
    assert sum(parts) == max(total, workers)
    assert max(parts) - min(parts) <= 1


def test_no_limit_stays_none():
    """0 means no limit, for a worker as for the group."""
    assert share(0, workers=4, index=3) == 0
