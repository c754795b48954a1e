"""Names as our configuration takes them, from names that keepalived takes."""

import re
from collections.abc import Container
from itertools import count
from typing import Final

_FOREIGN: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST: Final = 63
_ROOM: Final = 6  # for a hyphen and a number


def own_name(wanted: str, taken: Container[str] = ()) -> str:
    """Return the name that is most like the wanted one, and none of those that are taken."""
    name = _FOREIGN.sub("-", wanted)[:_LONGEST] or "unnamed"
    if name not in taken:
        return name
    numbered = (f"{name[: _LONGEST - _ROOM]}-{number}" for number in count(2))
    return next(each for each in numbered if each not in taken)
