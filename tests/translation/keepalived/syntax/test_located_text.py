"""A text that knows where its characters stand."""

import pytest

from appliance.translation.keepalived.syntax.located_text import LocatedText

pytestmark = pytest.mark.pure


def test_replaced():
    """What is put in has the place of what it replaces, and the rest keeps its own."""
    line = LocatedText.of_line("priority $P # x", source="f", line=2).replaced(9, 11, "100")
    assert line.text == "priority 100 # x"
    assert [line.place(at).column for at in (0, 9, 11, 13)] == [1, 10, 10, 13]
    assert line.place(99).column == 15


def test_nothing():
    """A text without characters begins in the first column."""
    assert LocatedText.of_line("", source="f", line=2).stripped().place().column == 1
