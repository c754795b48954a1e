"""Files shipped with the package: next to it in a checkout, inside it in a wheel."""

from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).resolve().parents[2]


def packaged(name: str) -> Path:
    """Return the path of a file of `config/`."""
    inside = _PACKAGE / "config" / name
    return inside if inside.exists() else _PACKAGE.parent / "config" / name
