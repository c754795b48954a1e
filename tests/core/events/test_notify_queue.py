"""What waits for one who is told: limited in number and rate, tried again, and counted where left out."""

import pytest

from appliance.core.events.notify_queue import BATCH, LONGEST_RETRY, MOST, PAUSE, TRIES, NotifyQueue
from appliance.model.operator_events import EventKind, OperatorEvent

pytestmark = pytest.mark.pure


def event(number: int) -> OperatorEvent:
    """Return the event of a number."""
    return OperatorEvent(when=float(number), kind=EventKind.SERVER_DOWN, subject=f"s{number}")


def filled(count: int) -> NotifyQueue:
    """Return a queue with so many events."""
    queue = NotifyQueue()
    for number in range(count):
        queue.add(event(number))
    return queue


def test_nothing_waits():
    """An empty queue has no deadline and no message."""
    queue = NotifyQueue()
    assert queue.deadline is None
    assert queue.due(0.0) is None


def test_messages_come_one_after_the_other_with_a_pause():
    """A burst becomes messages of limited size, in order."""
    queue = filled(BATCH + 1)
    first = queue.due(0.0)
    assert first is not None
    assert [each.subject for each in first.events] == [f"s{number}" for number in range(BATCH)]
    queue.delivered(first, 0.0)
    assert queue.due(PAUSE / 2) is None
    assert queue.deadline == PAUSE
    second = queue.due(PAUSE)
    assert second is not None
    assert [each.subject for each in second.events] == [f"s{BATCH}"]
    queue.delivered(second, PAUSE)
    assert queue.deadline is None


def test_a_flood_is_counted():
    """Above the limit the oldest are dropped; the next message says how many did not arrive."""
    queue = filled(MOST + 5)
    batch = queue.due(0.0)
    assert batch is not None
    assert (batch.left_out, batch.events[0].subject) == (5, "s5")
    queue.add(event(1000))  # drops the oldest one, which is on its way
    queue.delivered(batch, 0.0)
    after = queue.due(PAUSE)
    assert after is not None
    assert after.left_out == 0
    assert after.events[0].subject == f"s{5 + BATCH}"


def test_what_is_dropped_from_a_message_that_fails_is_left_out():
    """It was in no message that arrived."""
    queue = filled(MOST)
    batch = queue.due(0.0)
    assert batch is not None
    queue.add(event(1000))
    queue.failed(batch, 0.0)
    after = queue.due(LONGEST_RETRY)
    assert after is not None
    assert (after.left_out, after.events[0].subject) == (1, "s1")


def test_failures_are_tried_again_after_growing_pauses():
    """Only the first failure is worth a line of the log; at last the message is dropped and counted."""
    queue = filled(1)
    now, pauses = 0.0, []
    for number in range(TRIES):
        batch = queue.due(now)
        assert batch is not None
        assert queue.failed(batch, now) is (number == 0)
        deadline = queue.deadline
        if deadline is not None:
            pauses.append(deadline - now)
            now = deadline
    assert pauses[:4] == [2.0, 4.0, 8.0, 16.0]
    assert max(pauses) == LONGEST_RETRY
    assert queue.deadline is None
    queue.add(event(7))
    batch = queue.due(now + LONGEST_RETRY)
    assert batch is not None
    assert (batch.left_out, batch.events[0].subject) == (1, "s7")
