"""When a reload that was refused in passing is tried again."""

import pytest

from appliance.core.rollout.reload_retries import PAUSES, ReloadRetries

pytestmark = pytest.mark.pure


def test_nothing_is_due_before_a_refusal():
    """A start has nothing to try again."""
    assert not ReloadRetries().is_due(1e9)


def test_pauses_grow_and_end():
    """Each try comes later than the one before, and after the last one nobody tries."""
    retries, now, pauses = ReloadRetries(), 100.0, []
    while (pause := retries.refused(now)) is not None:
        pauses.append(pause)
        assert not retries.is_due(now + pause - 0.1)
        now += pause
        assert retries.is_due(now)
        retries.begin()
        assert not retries.is_due(now + 1000.0)
    assert pauses == list(PAUSES)
    assert pauses == sorted(pauses)
    assert retries.tries == len(PAUSES)
    assert not retries.is_due(now + 1000.0)


def test_files_that_cost_a_program_again_and_again_are_not_tried_any_more():
    """What a program dies of is no bad luck; each program may have some of its own."""
    retries, vrrp, health = ReloadRetries(), frozenset({"vrrp"}), frozenset({"health"})
    for pause, lost in zip(PAUSES, (health, vrrp, frozenset[str](), vrrp, health), strict=False):
        assert retries.refused(0.0, lost=lost) == pause
        retries.begin()
    assert retries.refused(0.0, lost=vrrp) is None
    assert retries.due_at is None
    retries.forget()
    assert retries.refused(0.0, lost=vrrp) == PAUSES[0]


def test_who_asks_begins_anew():
    """A new request has all its tries, and nothing of the one before is due."""
    retries = ReloadRetries()
    retries.refused(0.0)
    retries.begin()
    retries.refused(1.0)
    retries.forget()
    assert not retries.is_due(1000.0)
    assert retries.tries == 0
    assert retries.refused(0.0) == PAUSES[0]
