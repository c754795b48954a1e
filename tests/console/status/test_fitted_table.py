"""Tables in narrow terminals."""

from io import StringIO

import pytest
from rich.console import Console
from rich.text import Text

from appliance.console.output.columns import columns
from appliance.console.status.fitted_table import FittedTable

pytestmark = pytest.mark.pure


def shown(width: int) -> list[str]:
    """Return the lines of a table that needs 30 cells with all of its columns."""
    table = columns("name", "first>", "second>", "prose...")
    table.add_row("a-long-name", Text("1"), "2", "folded where it must")
    output = StringIO()
    Console(file=output, width=width).print(FittedTable(table=table, optional=("second", "first")))
    return [line.rstrip() for line in output.getvalue().splitlines()]


def test_all_columns_where_there_is_room():
    """Nothing is left out of a wide terminal."""
    assert shown(80) == [
        "name         first  second  prose",
        "a-long-name      1       2  folded where it must",
    ]


def test_spare_columns_go_one_after_the_other():
    """Only as many as it takes, in the order that was given; prose is folded before that."""
    assert shown(34)[0].split() == ["name", "first", "second", "prose"]
    assert shown(30)[0].split() == ["name", "first", "prose"]
    assert shown(22)[0].split() == ["name", "prose"]


def test_headers_are_never_single_letters():
    """What is left at a width that is too small is cut at the end, not into letters."""
    assert shown(12)[0].startswith("name")
