"""What the change of a server means for its pool."""

import pytest

from appliance.core.events.pool_counts import PoolCounts
from appliance.model.operator_events import EventKind

pytestmark = pytest.mark.pure


def told(*changes: tuple[int, int], servers: int = 3, unchecked: int = 0) -> list[EventKind | None]:
    """Return what changes mean, each given as how many are up after it and its step."""
    counts = PoolCounts()
    return [
        counts.changed("masters", up=up, servers=servers, step=step, unchecked=unchecked)
        for up, step in changes
    ]


def test_a_pool_that_loses_its_servers():
    """The last one is said once, that there is none once, and that it serves again."""
    assert told((2, -1), (1, -1), (0, -1), (0, 0), (1, 1), (2, 1)) == [
        None,
        EventKind.LAST_SERVER,
        EventKind.POOL_EMPTY,
        None,
        EventKind.POOL_SERVES,
        None,
    ]


def test_the_first_change_that_is_seen_counts():
    """A `health` that has just started knows by the change itself what was before it."""
    assert told((0, -1)) == [EventKind.POOL_EMPTY]
    assert told((1, 1)) == [EventKind.POOL_SERVES]
    assert told((1, -1)) == [EventKind.LAST_SERVER]
    assert told((1, 0)) == [None]


def test_a_pool_of_one_server_has_no_last_one():
    """It has never more than one, so that this is nothing to tell."""
    assert told((1, 1), (0, -1), servers=1) == [EventKind.POOL_SERVES, EventKind.POOL_EMPTY]


def test_a_pool_is_not_empty_before_all_servers_were_checked():
    """At the start the first server to fail is not the last one."""
    assert told((0, -1), unchecked=2) == [None]
