"""Names valid in our configuration, made from those that keepalived allows."""

import re
from collections.abc import Container
from itertools import count
from typing import Final

_FOREIGN: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST: Final = 63
_ROOM: Final = 6  # for a hyphen and a number


def own_name(wanted: str, taken: Container[str] = ()) -> str:
    """Return the valid name nearest to the wanted one that is not taken."""
    name = _FOREIGN.sub("-", wanted)[:_LONGEST] or "unnamed"
    if name not in taken:
        return name
    numbered = (f"{name[: _LONGEST - _ROOM]}-{number}" for number in count(2))
    return next(each for each in numbered if each not in taken)
