"""Shared IPs in a status: the configuration's, with what `announce` says, and what of it is a problem."""

import pytest
from support.values.observations import NOW, observations
from support.values.shared_ips import (
    ADDRESSES,
    announcing,
    bgp,
    neighbor,
    session,
    shared_status,
    with_shared,
)

from appliance.core.status.assessment import assess
from appliance.core.status.shared_ips import bgp_status, shared_troubles
from appliance.core.status.status import Status
from appliance.model.snapshot.shared_ip import Engine
from appliance.wire.lines.announce_status import AnnounceStatus

pytestmark = pytest.mark.pure

WELL = announcing(shared_status(), by=(session(),))


def assessed(announce: AnnounceStatus | None) -> Status:
    """Return the status where `announce` answers this."""
    return assess(observations(snapshot=with_shared(), announce=announce), NOW)


def told(announce: AnnounceStatus) -> list[str]:
    """Return the problems in an answer."""
    return list(map(str, shared_troubles(announce)))


def test_what_is_served_is_shown():
    """With its state, who has learnt it and who else serves it; the sessions stand beside it."""
    status = assessed(WELL)
    assert status.shared_ips == (shared_status(),)
    assert status.bgp is not None
    assert (status.bgp.engine, status.bgp.serve, status.bgp.drain) == ("bird", 198, 199)
    assert status.bgp.neighbors == (session(),)
    assert not [each for each in status.problems if "shared" in each or "session" in each]


def test_without_an_answer_nothing_is_known_of_them():
    """They are there with their addresses, and the neighbours with theirs."""
    status = assessed(None)
    assert [(each.name, each.addresses, each.state) for each in status.shared_ips] == [
        ("ingress-all", ADDRESSES, "")
    ]
    assert status.bgp is not None
    assert [(each.name, each.state) for each in status.bgp.neighbors] == [("tor-a", "")]


def test_a_status_without_bgp_has_none():
    """A configuration without shared IPs shows nothing of them."""
    status = assess(observations(), NOW)
    assert (status.shared_ips, status.bgp) == ((), None)


def test_with_another_daemon_no_session_is_ours():
    """The neighbours of `engine: table` are documentation for `bgp example`: nobody here has sessions."""
    assert bgp_status(bgp(neighbor(), engine=Engine.TABLE), None).neighbors == ()


@pytest.mark.parametrize(
    ("answer", "problems"),
    [
        (WELL, []),
        (
            announcing(shared_status(state="drained", reason="servers is down: none is up"), by=()),
            ["shared IP ingress-all is drained here: servers is down: none is up"],
        ),
        (announcing(shared_status(state="", reason=""), by=()), ["shared IP ingress-all is unknown here"]),
        (
            announcing(by=(session(state="Active", error="Socket: Connection refused"),)),
            ["the BGP session with tor-a is down: Socket: Connection refused"],
        ),
        (announcing(by=(session(state="Connect"),)), ["the BGP session with tor-a is down (state Connect)"]),
        (announcing(by=(session(state=""),)), ["the BGP session with tor-a is down (state unknown)"]),
        (
            announcing(by=(session(state=""),), trouble="BIRD is not installed"),
            ["shared IPs cannot be announced as they should be: BIRD is not installed"],
        ),
        (
            announcing(by=(session(state="Idle", error="Received: Hold timer expired"),), trouble="x"),
            [
                "shared IPs cannot be announced as they should be: x",
                "the BGP session with tor-a is down: Received: Hold timer expired",
            ],
        ),
        (
            announcing(by=(session(bfd="Down"),)),
            ["BFD with tor-a is Down: it detects a dead node by the hold time only"],
        ),
        (announcing(by=(session(bfd=""),)), []),
    ],
)
def test_problems(answer: AnnounceStatus, problems: list[str]):
    """What is not served, a session or BFD that is down, and what `announce` cannot do; each said once."""
    assert told(answer) == problems


def test_they_are_problems_of_the_status():
    """`appliance status` shows them, with a next step that names the subject."""
    status = assessed(announcing(shared_status(state="withdrawn", reason="x is down"), by=(session(),)))
    [problem] = [each for each in status.problems if each.subject == "ingress-all"]
    assert problem == "shared IP ingress-all is withdrawn here: x is down"
    assert problem.next_step(supervisorctl="") == "`appliance why ingress-all --kind shared`"
