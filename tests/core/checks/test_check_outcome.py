"""What the result of a check says about the server."""

import pytest

from appliance.core.checks.check_outcome import UNCHECKED, CheckOutcome
from appliance.model.check_results import CheckResult

pytestmark = pytest.mark.pure


def test_every_result_is_one_of_four_kinds():
    """A check passed, was answered badly, was not answered, or has not been made."""
    outcomes = [CheckOutcome(result=result) for result in CheckResult]
    passed = {each.result.value for each in outcomes if each.passed}
    unreachable = {each.result.value for each in outcomes if each.unreachable}
    assert passed == {"L4OK", "L6OK", "L7OK"}
    assert unreachable == {"L4CON", "L4TOUT", "L6RSP", "L6TOUT", "L7TOUT"}
    assert {result.value for result in CheckResult} - passed - unreachable == {"L7RSP", "L7STS", "UNK"}
    assert UNCHECKED.result is CheckResult.UNCHECKED
