"""The environment variables that a line of haproxy.cfg may name: `"${NAME}"`, `"$NAME"` and `"$.LINE"`.

`setenv` and similar directives in the section `global` change them for later lines (configuration.txt, 2.3).
"""

from collections.abc import Iterable, Mapping
from typing import Final

_OWN: Final = "HAPROXY_"


class Variables:
    """The environment after the lines read so far, with the source, line and section being read."""

    def __init__(self, environment: Mapping[str, str], *, source: str) -> None:
        self._values = dict(environment)
        self.source = source
        self.line = 0
        self.section = ""

    def value(self, name: str) -> str | None:
        """Return the value of a variable, None if it is not set; raises KeyError for another `.NAME`."""
        if not name.startswith("."):
            return self._values.get(name)
        known = {".FILE": self.source, ".LINE": str(self.line), ".SECTION": self.section}
        return known[name]

    def is_haproxys(self, name: str) -> bool:
        """Return whether HAProxy itself sets a variable, so that its value is unknown here."""
        return name.startswith(_OWN) and name not in self._values

    def set(self, name: str, value: str) -> None:
        """Set a variable (setenv)."""
        self._values[name] = value

    def unset(self, names: Iterable[str]) -> None:
        """Remove variables (unsetenv)."""
        for name in names:
            self._values.pop(name, None)

    def keep_only(self, names: Iterable[str]) -> None:
        """Remove all variables but these (resetenv)."""
        kept = frozenset(names)
        self._values = {name: value for name, value in self._values.items() if name in kept}
