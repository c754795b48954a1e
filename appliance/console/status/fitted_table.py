"""Tables that fit the terminal by omitting whole columns; rich would shrink all to a few letters each.

If no cell must be folded or cut, lines are composed here: rich takes a hundred microseconds per cell, which
for 40,000 servers is a minute.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from operator import itemgetter
from typing import Final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.table import Column, Table
from rich.text import Text

_GAP = 2
"""Spaces between two columns, as rich pads them."""

_MANY: Final = 1000
"""Number of rows from which rich takes longer than a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedTable:
    """A table, and the columns to omit if the terminal is narrow, the first one first."""

    table: Table
    optional: Sequence[str]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table with as many columns as fit; rich calls this to print it."""
        columns = list(self.table.columns)
        widths = {id(each): _needed(each) for each in columns}
        for name in self.optional:
            if _width(columns, widths) <= options.max_width:
                break
            columns = [each for each in columns if each.header != name]
        if (
            self.table.row_count >= _MANY
            and _width(columns, widths) <= options.max_width
            and all(each.no_wrap and _plain(each) for each in columns)
        ):
            yield from _lines(columns, [widths[id(each)] for each in columns], console)
        else:
            yield _table(columns)


def _width(columns: Sequence[Column], widths: dict[int, int]) -> int:
    return sum(widths[id(each)] for each in columns) + _GAP * (len(columns) - 1)


def _needed(column: Column) -> int:
    """Return the width that a column needs; foldable text needs that of its longest word."""
    texts = [cell.plain if isinstance(cell, Text) else str(cell) for cell in (column.header, *column.cells)]
    if not column.no_wrap:
        texts = [word for text in texts for word in text.split()]
    return max(map(_length, texts), default=0)


def _plain(column: Column) -> bool:
    """Return whether all cells are one line in one style: no markup, no name of an emoji."""
    return all(
        "\n" not in cell.plain and "\t" not in cell.plain and not cell.spans
        if isinstance(cell, Text)
        else isinstance(cell, str) and not set(cell) & set("[:\n\t")
        for cell in column.cells
    )


def _lines(columns: Sequence[Column], widths: Sequence[int], console: Console) -> Iterable[Segment]:
    """Yield the lines as rich does, the last column padded as the others are."""
    bold = console.get_style("table.header")
    heads = ([Text(str(each.header), style=bold + console.get_style(each.header_style))] for each in columns)
    cells = (
        [_padded(cell, width, column, console) for cell in (*head, *column.cells)]
        for head, column, width in zip(heads, columns, widths, strict=True)
    )
    for first, *others in zip(*cells, strict=True):
        parts = chain(first, *(((" " * _GAP, None), *each) for each in others))
        # Text in one style is one segment: rich reads each a dozen times.
        for style, run in groupby(parts, key=itemgetter(1)):
            yield Segment("".join(text for text, _ in run), style)
        yield Segment.line()


def _padded(
    cell: object, width: int, column: Column, console: Console
) -> tuple[tuple[str, Style | None], ...]:
    style: Style | None = None
    text = str(cell)
    if isinstance(cell, Text):
        text, style = cell.plain, console.get_style(cell.style) if cell.style else None
    padding = " " * (width - _length(text))
    right = column.justify == "right"
    if style is None:
        return ((padding + text if right else text + padding, None),)
    return ((padding, None), (text, style)) if right else ((text, style), (padding, None))


def _length(text: str) -> int:
    """Return the number of terminal cells of a text; ASCII, the most common, needs no table for that."""
    return len(text) if text.isascii() and text.isprintable() else cell_len(text)


def _table(columns: Sequence[Column]) -> Table:
    table = Table(box=None, pad_edge=False)
    for each in columns:
        table.add_column(
            each.header,
            justify=each.justify,
            header_style=each.header_style,
            no_wrap=each.no_wrap,
            overflow=each.overflow,
        )
    for row in zip(*(tuple(each.cells) for each in columns), strict=True):
        table.add_row(*row)
    return table
