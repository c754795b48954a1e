"""The conditions of `.if` and `.elif`, as far as they are known without HAProxy (configuration.txt, 2.4).

Predicates that depend on HAProxy itself (its version, its features, variables that it sets) are unknown here.
`&&` and `||` are evaluated from left to right, so that `0 && feature(QUIC)` is known nevertheless.
"""

import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

from appliance.model.messages.quoting import shown
from appliance.translation.haproxy.text.variables import Variables

_DEEPEST: Final = 32
_TOKEN: Final = re.compile(r"&&|\|\||[!()]|[A-Za-z_][A-Za-z0-9_]*\(|[+-]?[0-9]+(?![A-Za-z0-9_])", re.ASCII)
_ELSEWHERE: Final = frozenset(
    (
        "feature",
        "version_atleast",
        "version_before",
        "openssl_version_atleast",
        "openssl_version_before",
        "ssllib_name_startswith",
        "enabled",
    )
)


class Truth(Enum):
    """The value of a condition: true, false or unknown."""

    TRUE = True
    FALSE = False
    UNKNOWN = None

    def __invert__(self) -> "Truth":
        """Return the opposite; the opposite of unknown is unknown."""
        return self if self is Truth.UNKNOWN else Truth(not self.value)


class ConditionError(Exception):
    """A condition that HAProxy would reject too."""


def truth(condition: str, variables: Variables) -> tuple[Truth, str | None]:
    """Return the value of a condition, and the unknown predicate if any; raises ConditionError."""
    if not condition.strip():
        return Truth.FALSE, None
    reader = _Reader(condition, variables)
    result = reader.any_of(0)
    reader.end()
    return result, reader.unknown if result is Truth.UNKNOWN else None


class _Reader:
    """Reads a condition from left to right, to its end even if an early term decides it."""

    def __init__(self, text: str, variables: Variables) -> None:
        self._text = text
        self._at = 0
        self._variables = variables
        self.unknown: str | None = None

    def end(self) -> None:
        if self._next():
            raise self._fault()

    def any_of(self, depth: int) -> Truth:
        """Read terms that are joined by `||`: true if one is."""
        result = self._all_of(depth)
        while self._took("||"):
            result = _first(Truth.TRUE, result, self._all_of(depth))
        return result

    def _all_of(self, depth: int) -> Truth:
        result = self._single(depth)
        while self._took("&&"):
            result = _first(Truth.FALSE, result, self._single(depth))
        return result

    def _single(self, depth: int) -> Truth:
        if depth > _DEEPEST:
            raise ConditionError(f"the condition is nested deeper than {_DEEPEST} levels")
        if self._took("!"):
            return ~self._single(depth + 1)
        if self._took("("):
            result = self.any_of(depth + 1)
            if not self._took(")"):
                raise self._fault()
            return result
        token = self._next()
        if token.endswith("("):
            self._at += len(token)
            return self._predicate(token[:-1])
        if not token or not token.lstrip("+-").isdecimal():
            raise self._fault()
        self._at += len(token)
        return Truth(token.strip("+-0") != "")

    def _predicate(self, name: str) -> Truth:
        arguments = self._arguments()
        if name in _ELSEWHERE or (name == "defined" and self._variables.is_haproxys(arguments[0])):
            self.unknown = self.unknown or f"{name}({','.join(arguments)})"
            return Truth.UNKNOWN
        known = _PREDICATES.get((name, len(arguments)))
        if known is None:
            raise ConditionError(f"HAProxy has no predicate {shown(name)} with {len(arguments)} arguments")
        return Truth(known(self._variables, *arguments))

    def _arguments(self) -> list[str]:
        """Read to the closing parenthesis; quotes protect commas and parentheses, as in HAProxy."""
        arguments, quote = [""], ""
        while self._at < len(self._text):
            character = self._text[self._at]
            self._at += 1
            if character in "'\"" and quote in {"", character}:
                quote = "" if quote else character
            elif character == ")" and not quote:
                return [each.strip() for each in arguments]
            elif character == "," and not quote:
                arguments.append("")
            else:
                arguments[-1] += character
        raise ConditionError("`)` is missing")

    def _next(self) -> str:
        while self._text[self._at : self._at + 1].isspace():
            self._at += 1
        match = _TOKEN.match(self._text, self._at)
        return match[0] if match else self._text[self._at : self._at + 1]

    def _took(self, token: str) -> bool:
        if self._next() != token:
            return False
        self._at += len(token)
        return True

    def _fault(self) -> ConditionError:
        rest = self._text[self._at :]
        return ConditionError(f"{shown(rest)} cannot be parsed" if rest else "the condition is incomplete")


def _first(deciding: Truth, one: Truth, other: Truth) -> Truth:
    """Return the deciding value if either has it, else unknown if either is, else the value of both."""
    if deciding in (one, other):
        return deciding
    return Truth.UNKNOWN if Truth.UNKNOWN in (one, other) else one


def _defined(variables: Variables, name: str) -> bool:
    try:
        return variables.value(name) is not None
    except KeyError:
        return False


_PREDICATES: Final[Mapping[tuple[str, int], Callable[..., bool]]] = {
    ("defined", 1): _defined,
    ("streq", 2): lambda _, one, other: one == other,
    ("strneq", 2): lambda _, one, other: one != other,
}
