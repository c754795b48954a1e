"""When the kernel's table of connections is nearly full."""

import pytest
from support.values.observations import NOW, observations

from appliance.core.status.assessment import assess
from appliance.core.status.connection_room import ADVICE, ConnectionRoom

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("used", "before", "short"),
    [(79, False, False), (80, False, True), (100, False, True), (70, True, True), (69, True, False)],
)
def test_it_is_short_from_four_fifths_on(used: int, before: bool, short: bool):  # noqa: FBT001  # parametrized
    """Once short it stays so until it is below seven tenths."""
    assert ConnectionRoom(used=used, limit=100).short(before=before) is short


def test_without_a_limit_it_is_never_short():
    """The kernel's 0 is no limit."""
    assert not ConnectionRoom(used=10**6, limit=0).short()


def test_status_names_it_with_what_to_do():
    """A table with enough room is no problem, one that fills is, with its figures."""
    assert assess(observations(connection_room=ConnectionRoom(used=1, limit=100)), NOW).problems == ()
    (problem,) = assess(observations(connection_room=ConnectionRoom(used=90, limit=100)), NOW).problems
    assert problem.startswith("the kernel tracks 90 of 100 connections (conntrack)")
    assert problem.next_step(supervisorctl="") == ADVICE
