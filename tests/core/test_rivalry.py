"""What an active makes of others that it beats, with literal times."""

import pytest

from appliance.core.rivalry import Rivalry

pytestmark = pytest.mark.pure


def test_is_told_once_for_each_episode_and_peer():
    """A rival is news when it was silent before."""
    rivalry = Rivalry()
    heard = [("a", 0.0), ("a", 1.0), ("b", 1.0), ("a", 4.0), ("a", 7.5)]
    news = [rivalry.heard(peer, now=at, silence=3.0) for peer, at in heard]
    assert news == [True, False, True, False, True]


def test_expected_rival_is_no_news():
    """Whom we have preempted says so once more, and that is as it should be."""
    rivalry = Rivalry()
    rivalry.expect(until=1.0)
    assert not rivalry.heard("a", now=0.5, silence=3.0)
    assert rivalry.heard("b", now=1.0, silence=3.0)


def test_announces_at_a_pace():
    """At once for the first one, then once a second while it goes on, and not without a rival."""
    rivalry = Rivalry()
    assert not rivalry.announces(0.0)
    announced = []
    for tenth in range(31):
        rivalry.heard("a", now=tenth / 10, silence=3.0)
        if rivalry.announces(tenth / 10):
            announced.append(tenth)
    assert announced == [0, 10, 20, 30]
    assert not rivalry.announces(100.0)
