"""What an active does about others that it wins against, with literal times."""

import pytest

from appliance.core.vrrp.split_brain import MOST_PEERS, SHORTEST_ANSWER_PAUSE, OtherActives

pytestmark = pytest.mark.pure


def test_each_peer_is_reported_once_until_it_was_silent():
    """Another active is reported when it was silent before."""
    others = OtherActives()
    heard = [("a", 0.0), ("a", 1.0), ("b", 1.0), ("a", 4.0), ("a", 7.5)]
    reported = [others.store(peer, now=at, silence=3.0) for peer, at in heard]
    assert reported == [True, False, True, False, True]


def test_expected_active_is_not_reported():
    """An active that was preempted advertises once more, as it should."""
    others = OtherActives()
    others.expect(until=1.0)
    assert not others.store("a", now=0.5, silence=3.0)
    assert others.store("b", now=1.0, silence=3.0)


def test_expected_active_that_goes_on_is_reported():
    """One that was preempted and goes on is reported, once."""
    others = OtherActives()
    others.expect("a", until=1.0)
    reported = [others.store("a", now=at, silence=3.0) for at in (0.5, 1.5, 2.5)]
    assert reported == [False, True, False]


def test_one_late_advertisement_of_a_preempted_peer_is_not_reported():
    """Its advertisement and ours may have crossed, however late it comes; nobody else's may."""
    others = OtherActives()
    others.expect("a", until=1.0)
    heard = [("b", 2.0), ("a", 2.0), ("a", 3.0)]
    assert [others.store(peer, now=at, silence=3.0) for peer, at in heard] == [True, False, True]


def test_announces_once_a_second():
    """At once for the first one, then once a second while it goes on, and not without another active."""
    others = OtherActives()
    assert not others.may_announce(0.0)
    announced = []
    for tenth in range(31):
        others.store("a", now=tenth / 10, silence=3.0)
        if others.may_announce(tenth / 10):
            announced.append(tenth)
    assert announced == [0, 10, 20, 30]
    assert not others.may_announce(100.0)


def test_forged_senders_are_reported_a_bounded_number_of_times():
    """A flood from ever new senders is reported as often as there is room, and again when that is over."""
    others = OtherActives()
    reported = [others.store(f"peer {number}", now=number / 1000, silence=3.0) for number in range(3000)]
    assert reported == [True] * MOST_PEERS + [False] * (3000 - MOST_PEERS)
    assert others.store("peer 3000", now=3.0 + MOST_PEERS / 1000, silence=3.0)


@pytest.mark.parametrize(("interval", "pause"), [(1.0, 0.1), (0.05, SHORTEST_ANSWER_PAUSE)])
def test_answers_are_bounded(interval: float, pause: float):
    """The first is answered at once, the next not before a part of the interval is over."""
    others = OtherActives()
    assert others.may_answer(5.0, interval=interval)
    assert not others.may_answer(5.0 + pause * 0.9, interval=interval)
    assert others.answer_at == 5.0 + pause
    assert others.may_answer(5.0 + pause, interval=interval)
