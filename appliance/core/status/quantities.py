"""Numbers in a table for readers."""

from typing import Final

_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))
_SIZES: Final = ("B", "kB", "MB", "GB", "TB")


def duration(seconds: float | None) -> str:
    """Return at most two units, `3d 4h`, milliseconds below a second, `-` for None."""
    if seconds is None:
        return "-"
    if seconds < 1:
        return f"{max(seconds, 0) * 1000:.0f}ms"
    left, parts = int(seconds), list[str]()
    for size, unit in _UNITS:
        if left >= size or parts:
            parts.append(f"{left // size}{unit}")
            left %= size
    return " ".join([parts[0], *(part for part in parts[1:2] if not part.startswith("0"))])


def size(count: int | None) -> str:
    """Return bytes with a decimal unit, at most three digits, `-` for None."""
    if count is None:
        return "-"
    value, power = float(count), 0
    while value >= 999.5 and power < len(_SIZES) - 1:
        value /= 1000
        power += 1
    digits = 1 if power and value < 99.95 else 0
    return f"{value:.{digits}f}{_SIZES[power]}"
