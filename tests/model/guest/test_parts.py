"""Lists in properties: their parts are told apart, and each wrong one is told."""

import pytest

from appliance.model.guest import fields
from appliance.model.guest.parts import parts

pytestmark = pytest.mark.pure


def test_lists_have_any_separator_and_tell_each_wrong_part():
    """Commas, semicolons and white space; the same part counts once."""
    found = parts("10.0.0.1, x;10.0.0.2\n10.0.0.1 y,", fields.peer)
    assert found.right == ("10.0.0.1", "10.0.0.2")
    assert len(found.wrong) == 2
