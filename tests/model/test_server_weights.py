"""The weight that an operator gives a server."""

import pytest

from appliance.model.server_weights import OperatorWeight, WeightError, asked_weight, operator_weight

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("text", ["0", "1", "256", "0%", "50%", "25600%"])
def test_what_is_read_is_said_alike(text: str):
    """A weight's text is the one that it was read from."""
    assert str(operator_weight(text)) == text


@pytest.mark.parametrize("text", ["", "%", "-1", "257", "25601%", "1.5", "50%%", "5 0", "\u0661", "9" * 5000])
def test_others_are_the_one_error(text: str):
    """The operator hears what a weight is."""
    with pytest.raises(WeightError, match="0 to 256, or a part"):
        operator_weight(text)


@pytest.mark.parametrize(
    ("text", "configured", "whole"),
    [
        ("30", 10, 30.0),
        ("0", 10, 0.0),
        ("50%", 10, 5.0),
        ("50%", 1, 0.5),
        ("300%", 200, 256.0),
        ("0%", 9, 0.0),
    ],
)
def test_a_weight_replaces_the_configured_one(text: str, configured: int, whole: float):
    """Absolute, or as a part of it that may be a fraction, never above 256."""
    assert asked_weight(configured, operator_weight(text)) == whole
    assert asked_weight(configured, None) == configured


@pytest.mark.parametrize(("text", "keeps"), [("100%", True), ("10", True), ("99%", False), ("11", False)])
def test_the_configured_weight_is_no_other(text: str, keeps: bool):  # noqa: FBT001  # a column of the table
    """100 % and the configured number leave nothing to keep."""
    assert operator_weight(text).keeps(10) is keeps


def test_a_part_and_a_number_differ():
    """50 % is not 50."""
    assert OperatorWeight(value=50, percent=True) != OperatorWeight(value=50, percent=False)
