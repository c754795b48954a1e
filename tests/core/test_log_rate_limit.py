"""How many lines of one kind a log takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.core.log_rate_limit import LogRateLimit, OmittedLines

pytestmark = pytest.mark.pure


def rate(*, burst: int = 3, kinds: int = 100) -> LogRateLimit:
    """Return a limit with an interval of ten seconds."""
    return LogRateLimit(burst=burst, interval=10.0, kinds=kinds)


def test_a_flood_is_cut_after_its_burst_and_its_number_is_told():
    """Of eight equal lines three are written; at the end of the interval five are told, once."""
    limit = rate()
    written = [limit.admits("reload-line-unknown", {"reason": str(n)}, 1.0 + n) for n in range(8)]
    assert written == [True] * 3 + [False] * 5
    assert limit.deadline == 11.0
    assert limit.due(10.9) == []
    assert limit.due(11.0) == [OmittedLines(kind=(("event", "reload-line-unknown"),), count=5)]
    assert limit.due(99.0) == []
    assert limit.deadline is None


def test_after_the_interval_the_next_burst_is_written():
    """A kind that was over its burst is written again when its interval is over."""
    limit = rate(burst=1)
    assert limit.admits("x", {}, 0.0)
    assert not limit.admits("x", {}, 9.9)
    limit.due(10.0)
    assert limit.admits("x", {}, 10.0)


def test_servers_are_kinds_of_their_own():
    """A thousand servers that go down at once are a thousand lines."""
    limit = LogRateLimit()
    downs = [limit.admits("server-down", {"pool": "p", "server": f"s{n}"}, 0.0) for n in range(1000)]
    assert all(downs)


def test_what_a_stranger_chooses_makes_no_kinds():
    """Lines that differ in who sent them only are one kind."""
    limit = rate(burst=1)
    assert limit.admits("split-brain", {"router": "api", "peer": "10.0.0.1"}, 0.0)
    assert not limit.admits("split-brain", {"router": "api", "peer": "10.0.0.2"}, 0.0)
    assert limit.admits("split-brain", {"router": "ingress", "peer": "10.0.0.1"}, 0.0)


def test_kinds_beyond_the_bound_share_one():
    """When all places are taken, what comes next is limited together, and other events are not touched."""
    limit = rate(burst=1, kinds=2)
    assert limit.admits("a", {"name": "1"}, 0.0)
    assert limit.admits("a", {"name": "2"}, 1.0)
    assert limit.admits("a", {"name": "3"}, 2.0)
    assert not limit.admits("a", {"name": "4"}, 3.0)
    assert limit.due(12.0) == [OmittedLines(kind=(("event", "a"),), count=1)]


def test_two_floods_are_told_each_at_its_time():
    """The deadline is that of the flood whose interval ends first, then the other's."""
    limit = rate(burst=1)
    limit.admits("a", {}, 0.0)
    limit.admits("b", {}, 5.0)
    limit.admits("b", {}, 6.0)
    limit.admits("a", {}, 7.0)
    assert limit.deadline == 10.0
    assert [each.kind for each in limit.due(10.0)] == [(("event", "a"),)]
    assert limit.deadline == 15.0


EVENTS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.floats(0, 5)), max_size=200)


@given(EVENTS)
def test_every_line_is_written_or_told(events: list[tuple[str, int, float]]):
    """Written lines and those told as left out are all that came, and memory is bounded."""
    limit, now, written, told = rate(kinds=8), 0.0, 0, 0
    for event, name, pause in events:
        now += pause
        told += sum(each.count for each in limit.due(now))
        written += limit.admits(event, {"name": name}, now)
        assert len(limit._intervals) <= 8 + 2  # the bound, and one for each event
    told += sum(each.count for each in limit.due(now + 10.0))
    assert written + told == len(events)
    assert limit.deadline is None
