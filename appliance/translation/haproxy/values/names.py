"""Names of sections and servers: HAProxy's may have colons, and be longer than ours."""

import re
from typing import Final

from appliance.model.messages.quoting import shown

_FOREIGN: Final = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST: Final = 63
_THEIRS: Final = re.compile(r"[A-Za-z0-9._:-]+")


def foreign(name: str) -> str | None:
    """Return why HAProxy has no section or server of such a name, None where it has."""
    if _THEIRS.fullmatch(name):
        return None
    return f"{shown(name)} is not a name: letters, digits, dots, hyphens, underscores and colons"


class Names:
    """The names of one mapping, each of them there once; `reserved` are keys of it that are no names."""

    def __init__(self, *reserved: str) -> None:
        self._taken = dict.fromkeys(reserved, 1)

    def ours(self, name: str) -> str:
        """Return the name itself where it is one of ours and free, else the nearest one; it is taken then."""
        plain = _FOREIGN.sub("-", name)[:_LONGEST] or "unnamed"
        found = plain
        while found in self._taken:
            self._taken[plain] += 1
            found = f"{plain[: _LONGEST - len(str(self._taken[plain])) - 1]}-{self._taken[plain]}"
        self._taken[found] = 1
        return found
