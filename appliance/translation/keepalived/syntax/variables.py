"""Variables of a keepalived.conf: `$NAME=value`, `$NAME`, `${NAME}`, and those that keepalived defines.

A value is inserted when the variable is used, and variables in it are replaced then. A value may have several
lines; the rest of the line after its use must then be empty (keepalived.conf(5), "Parameter substitution").
"""

import posixpath
import re
from collections.abc import Mapping
from typing import Final

from appliance.model.messages.quoting import shown
from appliance.translation.keepalived.syntax.located_text import LineError, LocatedText

MOST_REPLACEMENTS: Final = 100
"""Replacements on one line: variables may refer to each other."""

LONGEST_LINE: Final = 8192
"""Characters of a line with all variables replaced; keepalived takes 1024."""

_DEFINITION: Final = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)=[ \t]*(.*)", re.DOTALL)
_USE: Final = re.compile(
    r"\$(?:\{(?P<braced>[A-Za-z_][A-Za-z0-9_]*)(?: +(?P<parameter>[A-Za-z0-9_ ]*))?\}"
    r"|(?P<bare>[A-Za-z_][A-Za-z0-9_]*)(?=[ \t,)]|$))"
)


def definition(line: LocatedText) -> tuple[str, str] | None:
    """Return name and value of a line that defines a variable, None for another line."""
    match = _DEFINITION.fullmatch(line.text)
    return (match[1], match[2]) if match else None


class Variables:
    """The variables defined so far; each value is its lines."""

    def __init__(self, *, config_id: str, environment: Mapping[str, str]) -> None:
        self._values: dict[str, tuple[str, ...]] = {}
        self._config_id = config_id
        self._environment = environment

    def define(self, name: str, *lines: str) -> None:
        """Set a variable, replacing any former value."""
        self._values[name] = lines

    def replaced(self, line: LocatedText) -> tuple[LocatedText, tuple[str, ...]]:
        """Return a line with its variables replaced, and the further lines of a multi-line value.

        An undefined variable stays as it is: it may be a variable of a script. Raises LineError.
        """
        at = 0
        below: tuple[str, ...] = ()
        for _ in range(MOST_REPLACEMENTS):
            match = _USE.search(line.text, at)
            if match is None:
                return line, below
            value = self._value(match, line)
            if value is None:
                at = match.start() + 1
                continue
            if len(value) > 1 and match.end() != len(line.text):
                at = match.start() + 1
                continue
            line = line.replaced(match.start(), match.end(), value[0])
            at = match.start()
            if len(line.text) > LONGEST_LINE:
                raise LineError(f"is longer than {LONGEST_LINE} characters with its variables", line.place())
            below = (*value[1:], *below)
        raise LineError(
            f"has more than {MOST_REPLACEMENTS} variables: does one contain itself?", line.place(at)
        )

    def _value(self, match: re.Match[str], line: LocatedText) -> tuple[str, ...] | None:
        name = match["braced"] or match["bare"]
        if name in self._values:
            return None if match["parameter"] else self._values[name]
        if name == "_RANDOM":
            reason = "`_RANDOM` would change at each reload: write the number"
            raise LineError(reason, line.place(match.start()))
        if name == "_ENV":
            return (self._outside((match["parameter"] or "").strip(), line, match.start()),)
        own = {
            "_PWD": posixpath.dirname(line.source) or ".",
            "_INSTANCE": self._config_id,
            "_HASH": "#",
            "_BANG": "!",
        }
        return (own[name],) if name in own else None

    def _outside(self, name: str, line: LocatedText, at: int) -> str:
        """Return the value of an environment variable (`${_ENV NAME}`, keepalived 2.3)."""
        if name not in self._environment:
            raise LineError(f"the environment has no variable {shown(name)}", line.place(at))
        return self._environment[name]
