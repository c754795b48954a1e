"""Patterns of paths (glob(3)), and a bound to what is looked at for them: `/*/*/*` is the whole machine."""

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from glob import has_magic
from typing import Final

MOST_NAMES: Final = 20_000
"""Most names that the patterns of one configuration may have us look at, in all folders together."""


class TooManyNamesError(Exception):
    """A pattern asks for more than is left of that; nothing of it is used."""


class BoundedGlob:
    """The patterns of one configuration."""

    def __init__(self) -> None:
        self._left = MOST_NAMES

    def matching(self, pattern: str) -> tuple[str, ...]:
        """Return the paths that a pattern stands for, in alphabetical order; raises TooManyNamesError."""
        found = ["/" if pattern.startswith("/") else ""]
        for part in filter(None, pattern.split("/")):
            found = [path for folder in found for path in self._matches(folder, part)]
        return tuple(sorted(found))

    def _matches(self, folder: str, part: str) -> Iterator[str]:
        """Yield the paths in a folder that a part of a pattern stands for, none where it cannot be read."""
        self._spend()
        if not has_magic(part):
            path = os.path.join(folder, part)  # noqa: PTH118  # a text, as patterns are
            if os.path.lexists(path):
                yield path
            return
        try:
            with os.scandir(folder or ".") as entries:
                for each in entries:
                    self._spend()
                    # glob(3): a leading dot has to be said.
                    if fnmatchcase(each.name, part) and (part[0] == "." or each.name[0] != "."):
                        yield os.path.join(folder, each.name)  # noqa: PTH118  # as above
        except OSError:
            return

    def _spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise TooManyNamesError(f"looks at more than {MOST_NAMES} names")
