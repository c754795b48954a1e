"""The columns of a table that fit on a terminal, and how wide each is."""

from collections.abc import Sequence
from typing import Final

from appliance.core.top.tables import Order, Row, Table

_GAP: Final = 2
_LEAST: Final = 8


def widths(table: Table, rows: Sequence[Row], width: int, order: Order) -> tuple[int, ...]:
    """Return the widths of columns in `width`, 0 for one left out; the sorted one has room for a sign."""
    needed = [
        max([len(column.title) + (column.name == order.column), *(len(row.cells[at].text) for row in rows)])
        for at, column in enumerate(table.columns)
    ]
    for rank in range(max((each.rank for each in table.columns), default=0), 0, -1):
        if taken(needed) <= width:
            break
        needed = [0 if each.rank == rank else size for each, size in zip(table.columns, needed, strict=True)]
    return _narrowed(needed, width)


def _narrowed(needed: list[int], width: int) -> tuple[int, ...]:
    """Take the missing width from the first column, which is the name."""
    missing = max(0, taken(needed) - width)
    return (max(min(needed[0], _LEAST), needed[0] - missing), *needed[1:]) if needed else ()


def taken(sizes: Sequence[int]) -> int:
    """Return the total width of columns, with the gaps between them."""
    shown = [each for each in sizes if each]
    return sum(shown) + _GAP * max(0, len(shown) - 1)
