"""Cells of the tables, with the values in the form for operators."""

from collections.abc import Mapping
from typing import Final

from appliance.core.status.headline import result
from appliance.core.status.quantities import duration, size
from appliance.core.status.status import ServerStatus
from appliance.core.top.tables import Cell, Style
from appliance.model.messages.quoting import printable
from appliance.model.server_states import ServerState

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
