"""What an active makes of others that it beats, with literal times."""

import pytest

from appliance.core.vrrp.split_brain import MOST_PEERS, SHORTEST_ANSWER_PAUSE, OtherActives

pytestmark = pytest.mark.pure


def test_is_told_once_for_each_episode_and_peer():
    """A rival is news when it was silent before."""
    others = OtherActives()
    heard = [("a", 0.0), ("a", 1.0), ("b", 1.0), ("a", 4.0), ("a", 7.5)]
    news = [others.heard(peer, now=at, silence=3.0) for peer, at in heard]
    assert news == [True, False, True, False, True]


def test_expected_rival_is_no_news():
    """Whom we have preempted says so once more, and that is as it should be."""
    others = OtherActives()
    others.expect(until=1.0)
    assert not others.heard("a", now=0.5, silence=3.0)
    assert others.heard("b", now=1.0, silence=3.0)


def test_expected_rival_that_goes_on_is_news():
    """Who does not give way although it was to be expected is told, once."""
    others = OtherActives()
    others.expect("a", until=1.0)
    news = [others.heard("a", now=at, silence=3.0) for at in (0.5, 1.5, 2.5)]
    assert news == [False, True, False]


def test_one_late_word_of_a_preempted_peer_is_no_news():
    """Its advertisement and ours may have crossed, however late it comes; nobody else's may."""
    others = OtherActives()
    others.expect("a", until=1.0)
    heard = [("b", 2.0), ("a", 2.0), ("a", 3.0)]
    assert [others.heard(peer, now=at, silence=3.0) for peer, at in heard] == [True, False, True]


def test_announces_at_a_pace():
    """At once for the first one, then once a second while it goes on, and not without a rival."""
    others = OtherActives()
    assert not others.may_announce(0.0)
    announced = []
    for tenth in range(31):
        others.heard("a", now=tenth / 10, silence=3.0)
        if others.may_announce(tenth / 10):
            announced.append(tenth)
    assert announced == [0, 10, 20, 30]
    assert not others.may_announce(100.0)


def test_made_up_rivals_are_no_news_without_end():
    """A flood from ever new senders is told as many times as there is room, and again when that is over."""
    others = OtherActives()
    news = [others.heard(f"peer {number}", now=number / 1000, silence=3.0) for number in range(3000)]
    assert news == [True] * MOST_PEERS + [False] * (3000 - MOST_PEERS)
    assert others.heard("peer 3000", now=3.0 + MOST_PEERS / 1000, silence=3.0)


@pytest.mark.parametrize(("interval", "pause"), [(1.0, 0.1), (0.05, SHORTEST_ANSWER_PAUSE)])
def test_answers_are_bounded(interval: float, pause: float):
    """The first is answered at once, the next not before a part of the interval is over."""
    others = OtherActives()
    assert others.may_answer(5.0, interval=interval)
    assert not others.may_answer(5.0 + pause * 0.9, interval=interval)
    assert others.answer_at == 5.0 + pause
    assert others.may_answer(5.0 + pause, interval=interval)
