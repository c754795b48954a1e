"""A status is made from whatever was found."""

import pytest
from support.values.observations import NAMES, NOW, observations

from appliance.core.status.assessment import assess
from appliance.core.status.status import (
    DegradedStart,
)
from appliance.wire.lines.control import AnswerProblem
from appliance.wire.lines.reload_status import ReloadStatus
from appliance.wire.lines.status_answer import StatusAnswer

pytestmark = pytest.mark.pure


def test_all_is_well():
    """With everything running and a server up there is no problem."""
    status = assess(observations(), NOW)
    assert status.ok
    assert status.problems == ()
    assert [each.name for each in status.programs] == list(NAMES)
    assert {each.uptime for each in status.programs} == {50.0}
    assert status.configuration == 7


def test_the_version_is_that_of_what_runs():
    """The command may be newer than the programs: `reload` says what they are."""
    answers = {name: StatusAnswer() for name in NAMES}
    answers["reload"] = ReloadStatus(version="9.9")
    assert assess(observations(answers=answers), NOW).version == "9.9"


def test_the_digest_is_that_of_what_runs():
    """`reload` says which file it has accepted; while it is silent nothing is said."""
    answers = {name: StatusAnswer() for name in NAMES}
    assert assess(observations(answers=answers), NOW).digest is None
    answers["reload"] = ReloadStatus(digest="3f1c")
    assert assess(observations(answers=answers), NOW).digest == "3f1c"


def test_without_a_snapshot_only_programs_are_shown():
    """Nothing is known of pools where the accepted configuration cannot be read."""
    status = assess(observations(snapshot="no such file", workers=()), NOW)
    assert status.problems[0] == "no accepted configuration: no such file"
    assert (status.configuration, status.frontends, status.pools) == (None, (), ())


def test_a_degraded_start_is_passed_on():
    """The errors that led to it stay readable, and it is no problem of its own."""
    note = DegradedStart(since=100.0, errors=(AnswerProblem(message="unknown key", line=3),))
    status = assess(observations(degraded=note), NOW)
    assert status.degraded == note
    assert status.ok
