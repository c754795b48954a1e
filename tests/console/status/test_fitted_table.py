"""Tables in narrow terminals."""

from collections.abc import Callable, Iterator
from io import StringIO

import pytest
from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from appliance.console.output.printing import columns
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


def _printed(rows: int, *, width: int, cells: Callable[[int], tuple[RenderableType, ...]]) -> str:
    table = columns("name", "first>", "second>", "state")
    for number in range(rows):
        table.add_row(*cells(number))
    output = StringIO()
    terminal = Console(file=output, width=width, force_terminal=True, color_system="truecolor")
    terminal.print(FittedTable(table=table, optional=("second",)))
    return output.getvalue()


def _cells(number: int) -> tuple[RenderableType, ...]:
    return f"pool/サーバ{number}", Text("[::]:80"), str(number), Text("up", style="green")


@pytest.mark.parametrize("width", [20, 26, 34, 80])
@pytest.mark.parametrize("name", [str, "[b]{}[/b]".format, ":smile:{}".format, "two\nlines{}".format])
def test_many_rows_look_as_few_do(monkeypatch: pytest.MonkeyPatch, width: int, name: Callable[[int], str]):
    """Lines that are put together here are those of rich, whatever the cells hold."""

    def cells(number: int) -> tuple[RenderableType, ...]:
        return (name(number), *_cells(number)[1:])

    rich_ones = _shown_text(_printed(12, width=width, cells=cells))
    monkeypatch.setattr("appliance.console.status.fitted_table._MANY", 12)
    assert _shown_text(_printed(12, width=width, cells=cells)) == rich_ones


def _shown_text(printed: str) -> list[list[tuple[str, str]]]:
    """Return each line's characters that can be seen, with their styles."""
    return [[(character, str(style)) for character, style in _styled(line)] for line in printed.splitlines()]


def _styled(line: str) -> Iterator[tuple[str, Style | None]]:
    text = Text.from_ansi(line)
    for position, character in enumerate(text.plain.rstrip()):
        styles = [str(span.style) for span in text.spans if span.start <= position < span.end]
        yield character, Style.parse(" ".join(styles)) if styles and character != " " else None


def test_many_rows_do_not_go_through_rich(monkeypatch: pytest.MonkeyPatch):
    """Rich takes a minute for the servers of a large site."""
    monkeypatch.setattr("appliance.console.status.fitted_table._table", lambda _: pytest.fail("rich's way"))
    assert len(_printed(1200, width=80, cells=_cells).splitlines()) == 1201


def test_a_row_is_one_part_for_each_style(monkeypatch: pytest.MonkeyPatch):
    """Rich looks at each a dozen times: it gets what is before a styled cell, that, and what is after it."""
    monkeypatch.setattr("appliance.console.status.fitted_table._MANY", 3)
    table = columns("name", "first>", "second>", "state")
    for number in range(3):
        table.add_row(*_cells(number))
    console = Console(file=StringIO(), width=80)
    _, *rows = Segment.split_lines(console.render(FittedTable(table=table, optional=())))
    assert [len(row) for row in rows] == [3, 3, 3]
