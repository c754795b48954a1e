"""What commands print for people."""

import pytest

from appliance.console.output.printing import print_rows

pytestmark = pytest.mark.pure


def test_rows_stand_in_columns(capsys: pytest.CaptureFixture[str]):
    """A column is as wide as its widest cell; numbers stand at its right side, and no line ends in spaces."""
    print_rows(("name", "count>"), [("a", "1"), ("longer", "1000000")])
    assert capsys.readouterr().out == "name      count\na             1\nlonger  1000000\n"


def test_no_rows_are_a_header(capsys: pytest.CaptureFixture[str]):
    """An empty list shows what it would have shown."""
    print_rows(("name", "count>"), [])
    assert capsys.readouterr().out == "name  count\n"
