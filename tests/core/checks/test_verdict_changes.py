"""The verdict on a server is a table, and its drawing shows the same."""

import re

import pytest
from support.values import snapshots

from appliance.core.checks import verdict_changes
from appliance.core.checks.verdict_changes import CHANGES, InARow, verdict_after
from appliance.model.server_states import HealthVerdict

pytestmark = pytest.mark.pure

CHECK = snapshots.check(rise=2, fall=3)


def test_the_drawing_is_the_table():
    """Each line of the drawing is an entry, and each entry has its line."""
    drawn = re.findall(
        r"^ +(\w+) +--(passed|failed), (\w+) *--> (\w+)$", verdict_changes.__doc__ or "", re.MULTILINE
    )
    assert {
        (HealthVerdict[before], result == "passed"): (HealthVerdict[after], InARow[needed])
        for before, result, needed, after in drawn
    } == dict(CHANGES)
    assert len(drawn) == len(CHANGES)


@pytest.mark.parametrize("verdict", HealthVerdict)
@pytest.mark.parametrize("passed", [True, False])
@pytest.mark.parametrize("streak", [1, 2, 3, 9])
@pytest.mark.parametrize("presumed", [True, False])
def test_the_verdict_after_any_check(verdict: HealthVerdict, *, passed: bool, streak: int, presumed: bool):
    """Only the number of results in a row that the table asks for changes a verdict."""
    after = verdict_after(verdict, passed=passed, streak=streak, presumed=presumed, check=CHECK)
    wanted = HealthVerdict.UP if passed else HealthVerdict.DOWN
    needed = 1 if presumed or verdict is HealthVerdict.UNKNOWN else 2 if passed else 3
    assert after is (wanted if streak >= needed else verdict)
