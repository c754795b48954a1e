"""Names of sections and servers: HAProxy's may contain colons, and be longer than ours."""

import re
from typing import Final

from appliance.model.messages.quoting import shown

_FOREIGN: Final = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST: Final = 63
_THEIRS: Final = re.compile(r"[A-Za-z0-9._:-]+")


def foreign(name: str) -> str | None:
    """Return why HAProxy allows no section or server of this name, None if it does."""
    if _THEIRS.fullmatch(name):
        return None
    return f"{shown(name)} is not a valid name: use letters, digits, dots, hyphens, underscores and colons"


class Names:
    """The names in one mapping, each used once; `reserved` are its keys that are not names."""

    def __init__(self, *reserved: str) -> None:
        self._taken = dict.fromkeys(reserved, 1)

    def ours(self, name: str) -> str:
        """Return the name itself if it is valid here and free, else the nearest such name, and reserve it."""
        plain = _FOREIGN.sub("-", name)[:_LONGEST] or "unnamed"
        found = plain
        while found in self._taken:
            self._taken[plain] += 1
            found = f"{plain[: _LONGEST - len(str(self._taken[plain])) - 1]}-{self._taken[plain]}"
        self._taken[found] = 1
        return found
