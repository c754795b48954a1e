"""Tables that fit the terminal by leaving out whole columns; rich would shrink all to a few letters each."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Column, Table
from rich.text import Text

_GAP = 2
"""Spaces between two columns, as rich pads them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedTable:
    """A table, and the columns that are left out where the terminal is narrow, the first one first."""

    table: Table
    optional: Sequence[str]

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table with as many columns as fit; rich calls this to print it."""
        columns = list(self.table.columns)
        for name in self.optional:
            if _width(columns) <= options.max_width:
                break
            columns = [each for each in columns if each.header != name]
        yield _table(columns)


def _width(columns: Sequence[Column]) -> int:
    return sum(map(_needed, columns)) + _GAP * (len(columns) - 1)


def _needed(column: Column) -> int:
    """Return the width that a column needs; text that may be folded needs that of its longest word."""
    texts = [cell.plain if isinstance(cell, Text) else str(cell) for cell in (column.header, *column.cells)]
    if not column.no_wrap:
        texts = [word for text in texts for word in text.split()]
    return max(map(cell_len, texts), default=0)


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
