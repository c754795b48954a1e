"""Tables that fit the terminal by omitting whole columns; rich would shrink all to a few letters each.

If no cell must be folded or cut, lines are composed here: rich takes a hundred microseconds per cell, which
for 40,000 servers is a minute.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.table import Column, Table
from rich.text import Text

_GAP = 2
"""Spaces between two columns, as rich pads them."""

_MANY: Final = 50
"""Number of rows from which rich takes longer than a tenth of a second."""


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
    texts = _texts((column.header, *column.cells))
    if not column.no_wrap:
        texts = [word for text in texts for word in text.split()]
    return max(_lengths(texts), default=0)


def _texts(cells: Iterable[object]) -> list[str]:
    return [cell.plain if isinstance(cell, Text) else str(cell) for cell in cells]


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
    yield from _rows(columns, list(heads), widths, console)
    yield from _rows(columns, [list(each.cells) for each in columns], widths, console)


def _rows(
    columns: Sequence[Column], cells: Sequence[Sequence[object]], widths: Sequence[int], console: Console
) -> Iterable[Segment]:
    """Yield the lines of these cells, by column; text in one style is one segment: rich reads each often."""
    texts = [_texts(each) for each in cells]
    right = [each.justify == "right" for each in columns]
    padded = [_padded(*each) for each in zip(texts, widths, right, strict=True)]
    styled = {at: found for at, each in enumerate(cells) if any(found := _styles(each, console))}
    for number, row in enumerate(zip(*padded, strict=True)):
        line, cursor = (" " * _GAP).join(row), 0
        for at, styles in styled.items():
            style, text = styles[number], texts[at][number]
            if style is not None:
                start = sum(map(len, row[:at])) + _GAP * at + right[at] * (len(row[at]) - len(text))
                yield Segment(line[cursor:start])
                yield Segment(text, style)
                cursor = start + len(text)
        yield Segment(line[cursor:])
        yield Segment.line()


def _styles(cells: Iterable[object], console: Console) -> list[Style | None]:
    return [
        console.get_style(each.style) if isinstance(each, Text) and each.style else None for each in cells
    ]


def _padded(texts: Sequence[str], width: int, right: bool) -> list[str]:  # noqa: FBT001  # one of three
    spaces = (" " * (width - each) for each in _lengths(texts))
    if right:
        return [space + text for text, space in zip(texts, spaces, strict=True)]
    return [text + space for text, space in zip(texts, spaces, strict=True)]


def _lengths(texts: Sequence[str]) -> Iterable[int]:
    """Return the numbers of terminal cells of texts; ASCII, the most common, needs no table for that."""
    every = "".join(texts)
    return map(len if every.isascii() and every.isprintable() else cell_len, texts)


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
