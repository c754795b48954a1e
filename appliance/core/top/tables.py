"""Tables as values: columns with names, and rows that are sorted, filtered and found again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from appliance.core.status.headline import result
from appliance.core.status.quantities import duration, size
from appliance.core.status.status import ServerStatus
from appliance.model.messages.quoting import printable
from appliance.model.server_states import ServerState

Value = str | float | None
"""The value behind a cell, by which it is sorted; None is unknown, and sorted last."""


class Style(StrEnum):
    """How a text stands out; its words carry the meaning too, for terminals without colours."""

    PLAIN = "plain"
    STRONG = "strong"
    FAINT = "faint"
    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"
    SELECTED = "selected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One value as it is shown."""

    text: str
    value: Value
    style: Style = Style.PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column: `name` in JSON, `title` on the screen.

    If not all fit, those of the highest `rank` go first; one of `rank` 0 always stays. `number` ones are on
    the right, and sorted with the largest first.
    """

    name: str
    title: str
    rank: int = 0
    number: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row; `key` is the same at every look, `pool` the pool that it opens, or None."""

    key: str
    cells: tuple[Cell, ...]
    pool: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Columns and rows, the rows in the order of the configuration."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The column by which rows are sorted, None for the order of the configuration; `reverse` reverses it."""

    column: str | None = None
    reverse: bool = False


def filtered(rows: Iterable[Row], words: str) -> tuple[Row, ...]:
    """Return the rows that contain every one of some words, in upper or lower case."""
    wanted = words.casefold().split()
    return tuple(row for row in rows if all(word in _text(row) for word in wanted))


def _text(row: Row) -> str:
    return " ".join((row.key, *(cell.text for cell in row.cells))).casefold()


def ordered(table: Table, rows: Sequence[Row], order: Order) -> tuple[Row, ...]:
    """Return rows of a table in an order: equal ones stay as they were, those without a value are last."""
    position = next((at for at, each in enumerate(table.columns) if each.name == order.column), None)
    if position is None:
        return tuple(reversed(rows)) if order.reverse else tuple(rows)
    known = [row for row in rows if row.cells[position].value is not None]
    unknown = [row for row in rows if row.cells[position].value is None]
    downwards = table.columns[position].number is not order.reverse
    return (*sorted(known, key=lambda row: _key(row.cells[position].value), reverse=downwards), *unknown)


def _key(value: Value) -> tuple[bool, float, str]:
    return (True, 0.0, value) if isinstance(value, str) else (False, value or 0.0, "")


_STATES: Final[Mapping[ServerState, Style]] = {
    ServerState.UP: Style.GOOD,
    ServerState.DOWN: Style.BAD,
    ServerState.DRAIN: Style.WARNING,
    ServerState.MAINT: Style.WARNING,
    ServerState.CHECKING: Style.FAINT,
}


def rate_text(per_second: float | None) -> str:
    """Return a rate with three digits, `-` for an unknown one."""
    if per_second is None:
        return "-"
    if per_second >= 99_950:
        return f"{per_second / 1000:.0f}k"
    return f"{per_second:.0f}" if per_second >= 99.95 or per_second == 0 else f"{per_second:.1f}"


def size_text(per_second: float | None) -> str:
    """Return bytes a second, `-` if unknown."""
    return "-" if per_second is None else size(round(per_second))


def text(said: str, style: Style = Style.PLAIN) -> Cell:
    """Return a text; an empty one is unknown."""
    return Cell(text=printable(said) or "-", value=said or None, style=style)


def number(value: float | None, *, bad: bool = False) -> Cell:
    """Return a number; a `bad` one stands out unless it is 0."""
    shown = "-" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
    return Cell(text=shown, value=value, style=Style.BAD if bad and value else Style.PLAIN)


def rate(per_second: float | None, *, bad: bool = False) -> Cell:
    """Return a rate; a `bad` one stands out unless it is 0."""
    return Cell(
        text=rate_text(per_second), value=per_second, style=Style.BAD if bad and per_second else Style.PLAIN
    )


def amount(per_second: float | None) -> Cell:
    """Return bytes a second."""
    return Cell(text=size_text(per_second), value=per_second)


def seconds(passed: float | None) -> Cell:
    """Return how long something took or takes."""
    return Cell(text=duration(passed), value=passed)


def since(at: float | None, now: float) -> Cell:
    """Return how long ago something was, both Unix seconds."""
    return seconds(max(0.0, now - at) if at else None)


def state(of_server: ServerState | None) -> Cell:
    """Return a server's state."""
    return text(of_server.value, _STATES[of_server]) if of_server else text("unknown", Style.WARNING)


def last_check(server: ServerStatus) -> Cell:
    """Return the result of a server's last check: L7STS/500."""
    return text(result(server.check) if server.check else "")
