"""A configuration that a person has edited is never overwritten without being told to."""

import pytest

from appliance.model.guest.placement import Choice, Placed, Placement, placement

pytestmark = pytest.mark.pure

OLD = Placed(yaml="old", properties="then")
NEW = Placed(yaml="new", properties="now")
SAME_PROPERTIES = Placed(yaml="new", properties="then")
SAME_YAML = Placed(yaml="old", properties="now")


@pytest.mark.parametrize(
    ("wanted", "current", "last", "choice", "decided"),
    [
        (NEW, None, None, Choice.NONE, Placement.WRITE),
        (NEW, None, OLD, Choice.KEEP, Placement.WRITE),
        (NEW, "new", None, Choice.NONE, Placement.SAME),
        (NEW, "new", OLD, Choice.OVERWRITE, Placement.SAME),
        (NEW, "old", OLD, Choice.NONE, Placement.WRITE),
        (NEW, "edited", OLD, Choice.NONE, Placement.BESIDE),
        (NEW, "edited", None, Choice.NONE, Placement.BESIDE),
        (NEW, "edited", OLD, Choice.OVERWRITE, Placement.OVERWRITE),
        (NEW, "edited", NEW, Choice.OVERWRITE, Placement.OVERWRITE),
        (NEW, "edited", OLD, Choice.KEEP, Placement.EDITED),
        (NEW, "edited", NEW, Choice.NONE, Placement.EDITED),
        (SAME_PROPERTIES, "edited", OLD, Choice.NONE, Placement.EDITED),
        (SAME_YAML, "edited", OLD, Choice.NONE, Placement.EDITED),
    ],
)
def test_what_is_done_with_a_configuration(
    wanted: Placed, current: str | None, last: Placed | None, choice: Choice, decided: Placement
):
    """It depends on what is there, who made it, whether there is anything new, and the operator."""
    assert placement(wanted=wanted, current=current, last=last, intended=last, choice=choice) is decided


@pytest.mark.parametrize("last", [None, OLD])
@pytest.mark.parametrize("current", ["old", "meant"])
def test_a_power_cut_does_not_pass_for_an_edit(last: Placed | None, current: str):
    """Between what was in place and what was to be, either may be there; neither is a person's."""
    intended = Placed(yaml="meant", properties="between")
    decided = placement(wanted=NEW, current=current, last=last, intended=intended, choice=Choice.NONE)
    edited = current == "old" and last is None
    assert decided is (Placement.BESIDE if edited else Placement.WRITE)
