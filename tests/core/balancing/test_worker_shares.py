"""Limits of a group are divided among its workers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.values.snapshots import frontend, group

from appliance.core.balancing.worker_shares import session_limit, share, shortage

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


def test_files_that_are_enough_are_no_shortage():
    """A worker that may open two files for each of its sessions, and some more, lacks nothing."""
    wanted = group(frontends=[frontend("f", pool="p", max_connections=1000)])
    assert shortage(wanted, workers=2, open_files=2000) is None


def test_a_shortage_says_both_numbers():
    """What a worker can hold, and its part of what the configuration wants, rounded up."""
    wanted = group(frontends=[frontend("f", pool="p", max_connections=1001)])
    found = shortage(wanted, workers=2, open_files=1000)
    assert found is not None
    assert (found.sessions, found.wanted) == (session_limit(1000), 501)


def test_endpoints_of_our_own_want_nothing():
    """A frontend that answers by itself has no server's descriptor, and few connections."""
    wanted = group(frontends=[frontend("ready", respond="/haproxy_ready", max_connections=10**6)])
    assert shortage(wanted, workers=1, open_files=1000) is None


@given(st.integers(1, 2_000_000))
def test_a_worker_holds_at_least_one_session(open_files: int):
    """However few files there are; and never more than there are files for."""
    assert 1 <= session_limit(open_files) <= max(1, open_files // 2)
