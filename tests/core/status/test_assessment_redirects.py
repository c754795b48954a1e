"""Redirects in a status: the configuration's, with what the program says of them."""

import pytest
from support.values.observations import NOW, observations
from support.values.snapshots import frontend, group, redirect, snapshot

from appliance.core.status.assessment import assess, redirected_frontends
from appliance.wire.lines.redirect_status import RedirectedFrontend, RedirectStatus

pytestmark = pytest.mark.pure

CONFIGURED = snapshot(groups=[group("api", frontends=[frontend("a"), frontend("k", redirect=redirect())])])


def test_a_redirect_is_shown_with_its_state():
    """Only of frontends that have one."""
    told = RedirectedFrontend(name="api/k", state="on", since=7.0, reason="1 of 1 servers up")
    [shown] = redirected_frontends(CONFIGURED, RedirectStatus(redirects=(told,)))
    assert (shown.name, shown.sources) == ("api/k", ("10.0.0.200:6443",))
    assert (shown.state, shown.since, shown.reason) == ("on", 7.0, "1 of 1 servers up")


@pytest.mark.parametrize("redirect", [None, RedirectStatus()])
def test_a_redirect_of_which_nothing_is_said_has_no_state(redirect: RedirectStatus | None):
    """The program may be down, or obey an older configuration."""
    [shown] = redirected_frontends(CONFIGURED, redirect)
    assert (shown.state, shown.since, shown.reason) == (None, None, None)


def test_rules_that_cannot_be_made_are_a_problem():
    """By the kernel's own reason; off, or standing back, is none."""
    found = observations(redirect=RedirectStatus(trouble="Operation not permitted"))
    assert "connections cannot be redirected: Operation not permitted" in assess(found, NOW).problems
    assert (
        assess(observations(redirect=RedirectStatus()), NOW).problems == assess(observations(), NOW).problems
    )
