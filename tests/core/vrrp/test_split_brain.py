"""What an active makes of others that it beats, with literal times."""

import pytest

from appliance.core.vrrp.split_brain import MOST, SHORTEST_PAUSE, OtherActives

pytestmark = pytest.mark.pure


def test_is_told_once_for_each_episode_and_peer():
    """A rival is news when it was silent before."""
    rivalry = OtherActives()
    heard = [("a", 0.0), ("a", 1.0), ("b", 1.0), ("a", 4.0), ("a", 7.5)]
    news = [rivalry.heard(peer, now=at, silence=3.0) for peer, at in heard]
    assert news == [True, False, True, False, True]


def test_expected_rival_is_no_news():
    """Whom we have preempted says so once more, and that is as it should be."""
    rivalry = OtherActives()
    rivalry.expect(until=1.0)
    assert not rivalry.heard("a", now=0.5, silence=3.0)
    assert rivalry.heard("b", now=1.0, silence=3.0)


def test_expected_rival_that_goes_on_is_news():
    """Who does not give way although it was to be expected is told, once."""
    rivalry = OtherActives()
    rivalry.expect("a", until=1.0)
    news = [rivalry.heard("a", now=at, silence=3.0) for at in (0.5, 1.5, 2.5)]
    assert news == [False, True, False]


def test_one_late_word_of_a_preempted_peer_is_no_news():
    """Its advertisement and ours may have crossed, however late it comes; nobody else's may."""
    rivalry = OtherActives()
    rivalry.expect("a", until=1.0)
    heard = [("b", 2.0), ("a", 2.0), ("a", 3.0)]
    assert [rivalry.heard(peer, now=at, silence=3.0) for peer, at in heard] == [True, False, True]


def test_announces_at_a_pace():
    """At once for the first one, then once a second while it goes on, and not without a rival."""
    rivalry = OtherActives()
    assert not rivalry.announces(0.0)
    announced = []
    for tenth in range(31):
        rivalry.heard("a", now=tenth / 10, silence=3.0)
        if rivalry.announces(tenth / 10):
            announced.append(tenth)
    assert announced == [0, 10, 20, 30]
    assert not rivalry.announces(100.0)


def test_made_up_rivals_are_no_news_without_end():
    """A flood from ever new senders is told as many times as there is room, and again when that is over."""
    rivalry = OtherActives()
    news = [rivalry.heard(f"peer {number}", now=number / 1000, silence=3.0) for number in range(3000)]
    assert news == [True] * MOST + [False] * (3000 - MOST)
    assert rivalry.heard("peer 3000", now=3.0 + MOST / 1000, silence=3.0)


@pytest.mark.parametrize(("interval", "pause"), [(1.0, 0.1), (0.05, SHORTEST_PAUSE)])
def test_answers_are_bounded(interval: float, pause: float):
    """The first is answered at once, the next not before a part of the interval is over."""
    rivalry = OtherActives()
    assert rivalry.answers(5.0, interval=interval)
    assert not rivalry.answers(5.0 + pause * 0.9, interval=interval)
    assert rivalry.answer_at == 5.0 + pause
    assert rivalry.answers(5.0 + pause, interval=interval)
