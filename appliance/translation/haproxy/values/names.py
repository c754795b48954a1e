"""Names of sections and servers: HAProxy's may have colons, and be longer than ours."""

import re
from collections.abc import Collection
from typing import Final

_FOREIGN: Final = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST: Final = 63


def our_name(name: str, taken: Collection[str]) -> str:
    """Return the name itself where it is one of ours, else the nearest one that is not taken."""
    plain = _FOREIGN.sub("-", name)[:_LONGEST] or "unnamed"
    if plain not in taken:
        return plain
    numbered = (f"{plain[: _LONGEST - len(str(number)) - 1]}-{number}" for number in range(2, len(taken) + 3))
    return next(each for each in numbered if each not in taken)
