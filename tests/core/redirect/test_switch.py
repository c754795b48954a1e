"""The redirect of one frontend over time."""

import pytest
from support.values.snapshots import frontend, group, redirect, snapshot

from appliance.core.redirect.switch import NOT_LOOKED_YET, RedirectSwitch, Seen, switches
from appliance.model.snapshot.frontends import Bind, Redirect, RedirectWhen

pytestmark = pytest.mark.pure

GOOD = Seen(accepting=True, up=True, detail="1 of 2 servers up")
BAD = Seen(accepting=True, up=False, detail="0 of 2 servers up")
NOBODY = Seen(accepting=False, up=False, detail="no worker runs")


def _switch(given: Redirect | None = None, *, resumed: bool = False, **changes: object) -> RedirectSwitch:
    found = switches(
        snapshot(groups=[group("api", frontends=[frontend("k", redirect=given or redirect(), **changes)])]),
        resumed=frozenset({"api/k"} if resumed else ()),
    )
    return found[0]


def test_it_is_looked_at_in_its_interval():
    """It is due at once, then after each interval; when it began and why is told."""
    switch = _switch(redirect(interval=6.0, rise=2, fall=2))
    assert (switch.due, switch.wanted, switch.since, switch.reason) == (0.0, False, None, NOT_LOOKED_YET)
    assert not switch.look(GOOD, 100.0)
    assert (switch.due, switch.streak, switch.since) == (106.0, 1, 100.0)
    assert switch.look(GOOD, 106.0)
    assert (switch.wanted, switch.since, switch.reason) == (True, 106.0, "1 of 2 servers up")
    assert not switch.look(BAD, 112.0)
    assert (switch.wanted, switch.since, switch.reason) == (True, 106.0, "0 of 2 servers up")
    assert switch.look(BAD, 118.0)
    assert (switch.wanted, switch.since) == (False, 118.0)


def test_it_ends_at_once_where_nobody_accepts():
    """By a look that was due, or between two of them, which leaves the next one where it is."""
    switch = _switch(redirect(interval=6.0, rise=1))
    assert switch.look(GOOD, 1.0)
    assert switch.nobody(NOBODY, 2.0)
    assert (switch.wanted, switch.due, switch.reason) == (False, 7.0, "no worker runs")
    assert not switch.look(NOBODY, 7.0)
    assert switch.look(GOOD, 13.0)


def test_what_was_on_needs_one_good_look():
    """A program that was killed does not begin to count anew; a bad look first makes it do so."""
    switch = _switch(redirect(rise=3), resumed=True)
    assert switch.look(GOOD, 1.0)
    other = _switch(redirect(rise=3), resumed=True)
    other.look(BAD, 1.0)
    assert not other.look(GOOD, 2.0)


def test_the_pool_that_counts():
    """A frontend's own, what an answer needs, and none where only workers count."""
    assert _switch(pool="masters").pool == "masters"
    assert _switch(pool=None, respond="/ready", needs="routers").pool == "routers"
    assert _switch(pool=None, respond="/ready").pool is None
    assert _switch(redirect(when=RedirectWhen.ACCEPTING), pool="masters").pool is None


def test_what_makes_it_another_one():
    """Its state holds on for the same rules by the same looks only."""
    assert _switch().same_as(_switch(max_connections=7))
    for other in (
        _switch(redirect(fall=4)),
        _switch(redirect(sources=(Bind(host="10.0.0.201", port=6443),))),
        _switch(pool="other"),
        _switch(binds=(Bind(host="::", port=9446),)),
    ):
        assert not _switch().same_as(other)


def test_only_frontends_that_redirect():
    """Each has the name of its group before its own, as the log tells it."""
    groups = [
        group("api", frontends=[frontend("a"), frontend("b", redirect=redirect())]),
        group("ingress", frontends=[frontend("c", redirect=redirect())]),
    ]
    found = switches(snapshot(groups=groups))
    assert [(each.name, each.program) for each in found] == [
        ("api/b", "proxy-api"),
        ("ingress/c", "proxy-ingress"),
    ]
