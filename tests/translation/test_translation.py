"""What a reader returns."""

import pytest

from appliance.model.document.tree import Node
from appliance.model.messages.problems import FilePosition
from appliance.translation.translation import LineOutcome, Outcome, Translation

pytestmark = pytest.mark.pure


def test_refused_lines():
    """Only what cannot be obeyed is refused."""
    place = FilePosition(line=1, column=1)
    lines = tuple(LineOutcome(place=place, text="x", outcome=each, reason="why") for each in Outcome)
    translation = Translation(root=Node(place=place, value={}), lines=lines)
    assert [each.outcome for each in translation.refused] == [Outcome.REFUSED]
