"""Regular expressions that a check looks for in an answer (`expect_rstring`; HAProxy's `rstring`), as states.

The language is the part of PCRE's that can be searched for in one pass, in a time that grows with the answer
and not with its content: the server chooses the bytes, and one process checks all servers. So there are no
back references, no lookaround, and no word boundaries. As in HAProxy bytes are compared, case matters, and
`.` is everything but a line break.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from appliance.model.messages.quoting import shown

LONGEST: Final = 256
"""Most bytes of an expression."""

_MOST_STATES: Final = 2000
_MOST_WORK: Final = 20_000
_MOST_REPEATS: Final = 255
_DEEPEST: Final = 20
_ALL: Final = (1 << 256) - 1
_NO_CASE: Final = b"(?i)"
_COUNT: Final = re.compile(rb"\{([0-9]{1,4})(?:(,)([0-9]{1,4})?)?\}")
_HEX: Final = re.compile(rb"[0-9A-Fa-f]{2}")


def _mask(characters: bytes) -> int:
    return sum(1 << each for each in set(characters))


_DIGIT: Final = _mask(b"0123456789")
_WORD: Final = _DIGIT | _mask(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
_SPACE: Final = _mask(b" \t\n\v\f\r")
_CLASSES: Final[Mapping[int, int]] = {
    ord("d"): _DIGIT,
    ord("D"): _ALL ^ _DIGIT,
    ord("w"): _WORD,
    ord("W"): _ALL ^ _WORD,
    ord("s"): _SPACE,
    ord("S"): _ALL ^ _SPACE,
}
_CONTROLS: Final[Mapping[int, int]] = {ord("r"): 13, ord("n"): 10, ord("t"): 9, ord("f"): 12, ord("e"): 27}
_LETTERS: Final = frozenset(b"abcdefghijklmnopqrstuvwxyz")


@dataclass(frozen=True, slots=True)
class OneOf:
    """Takes a byte whose bit is set in `bytes`, and continues at `then`."""

    bytes: int
    then: int


@dataclass(frozen=True, slots=True)
class Fork:
    """Continues at each of these without a byte."""

    ways: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AtStart:
    """Continues at `then` if no byte was taken yet (`^`)."""

    then: int


@dataclass(frozen=True, slots=True)
class AtEnd:
    """Continues at `then` if nothing follows, or only a last line break (`$`)."""

    then: int


@dataclass(frozen=True, slots=True)
class Found:
    """The expression has been found."""


State = OneOf | Fork | AtStart | AtEnd | Found


@dataclass(frozen=True, slots=True)
class BytePattern:
    """An expression as states, of which `first` is the initial one."""

    states: tuple[State, ...]
    first: int


def byte_pattern(text: str, *, no_case: bool = False) -> BytePattern:
    """Return an expression's program; raises ValueError naming what it cannot contain.

    `no_case` compares letters as `(?i)` at the beginning does.
    """
    source = text.encode()
    if not source or len(source) > LONGEST:
        raise ValueError(f"must be a regular expression of 1 to {LONGEST} bytes")
    try:
        return _Compiler(_Parser(source, no_case=no_case).whole()).pattern()
    except _PatternError as error:
        raise ValueError(f"{error} in the regular expression {shown(text)}") from None


class _PatternError(Exception):
    """What is wrong with an expression, in words."""


_Emit = Callable[["_Compiler", int], int]
"""Appends the states of a part of the expression that leads to a state, and returns its first state."""


class _Parser:
    """Reads an expression from left to right into functions that append its states."""

    def __init__(self, source: bytes, *, no_case: bool) -> None:
        self._no_case = no_case or source.startswith(_NO_CASE)
        self._source = source.removeprefix(_NO_CASE)
        self._at = 0
        self._depth = 0

    def whole(self) -> _Emit:
        found = self._choice()
        if self._at < len(self._source):
            raise _PatternError("a `)` without its `(`")
        return found

    def _choice(self) -> _Emit:
        ways = [self._sequence()]
        while self._take(b"|"):
            ways.append(self._sequence())
        return _choice(ways)

    def _sequence(self) -> _Emit:
        parts: list[_Emit] = []
        while self._at < len(self._source) and self._source[self._at] not in b"|)":
            parts.append(self._part())
        return _sequence(parts)

    def _part(self) -> _Emit:
        if self._take(b"^"):
            return lambda compiler, then: compiler.append(AtStart(then))
        if self._take(b"$"):
            return lambda compiler, then: compiler.append(AtEnd(then))
        atom = self._group() if self._take(b"(") else _one_of(self._cased(self._atom()))
        return self._repeated(atom)

    def _group(self) -> _Emit:
        if not self._take(b"?:") and self._peek(b"?"):
            raise _PatternError("`(?` is not understood, but for `(?:` and, at the beginning, `(?i)`,")
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _PatternError(f"more than {_DEEPEST} groups within each other")
        found = self._choice()
        if not self._take(b")"):
            raise _PatternError("a `(` without its `)`")
        self._depth -= 1
        return found

    def _repeated(self, atom: _Emit) -> _Emit:
        bounds = self._bounds()
        if bounds is None:
            return atom
        if not self._take(b"?") and self._peek(b"+"):
            raise _PatternError("a repetition that gives nothing back (`++`) is not understood")
        if self._bounds() is not None:
            raise _PatternError("a repetition of a repetition")
        return _repetition(atom, *bounds)

    def _bounds(self) -> tuple[int, int | None] | None:
        for mark, bounds in ((b"*", (0, None)), (b"+", (1, None)), (b"?", (0, 1))):
            if self._take(mark):
                return bounds
        count = _COUNT.match(self._source, self._at)
        if count is None:
            return None
        self._at = count.end()
        low = int(count[1])
        high = low if count[2] is None else None if count[3] is None else int(count[3])
        if max(low, high or 0) > _MOST_REPEATS or (high is not None and high < low):
            raise _PatternError(f"a count that is not from 0 to {_MOST_REPEATS}, or upside down,")
        return low, high

    def _atom(self) -> int:
        byte = self._next()
        if byte in b"*+?":
            raise _PatternError("a repetition of nothing")
        if byte == ord("."):
            return _ALL ^ _mask(b"\n")
        if byte == ord("["):
            return self._class()
        return self._escaped() if byte == ord("\\") else 1 << byte

    def _class(self) -> int:
        inverted, found, first = self._take(b"^"), 0, True
        while first or not self._take(b"]"):
            first = False
            if self._peek(b"[:"):
                raise _PatternError("a named class of characters (`[:`) is not understood")
            low = self._member()
            if self._peek(b"-") and self._source[self._at + 1 : self._at + 2] not in (b"", b"]"):
                self._at += 1
                found |= _range(low, self._member())
            else:
                found |= low
        cased = self._cased(found)
        return _ALL ^ cased if inverted else cased

    def _member(self) -> int:
        byte = self._next()
        return self._escaped() if byte == ord("\\") else 1 << byte

    def _escaped(self) -> int:
        byte = self._next()
        if byte in _CLASSES:
            return _CLASSES[byte]
        if byte in _CONTROLS:
            return 1 << _CONTROLS[byte]
        digits = _HEX.match(self._source, self._at) if byte == ord("x") else None
        if digits is not None:
            self._at = digits.end()
            return 1 << int(digits[0], 16)
        if chr(byte).isalnum():
            raise _PatternError(f"`\\{chr(byte)}` is not understood")
        return 1 << byte

    def _cased(self, mask: int) -> int:
        if not self._no_case:
            return mask
        swapped = (each for each in range(256) if mask >> each & 1 and each | 32 in _LETTERS)
        return mask | sum(1 << (each ^ 32) for each in swapped if not mask >> (each ^ 32) & 1)

    def _next(self) -> int:
        if self._at >= len(self._source):
            raise _PatternError("an end in the middle")
        self._at += 1
        return self._source[self._at - 1]

    def _peek(self, text: bytes) -> bool:
        return self._source.startswith(text, self._at)

    def _take(self, text: bytes) -> bool:
        found = self._peek(text)
        self._at += len(text) if found else 0
        return found


def _range(low: int, high: int) -> int:
    if low.bit_count() != 1 or high.bit_count() != 1 or low > high:
        raise _PatternError("a range of characters that is none, or upside down,")
    return 2 * high - low


def _one_of(mask: int) -> _Emit:
    return lambda compiler, then: compiler.append(OneOf(mask, then))


def _sequence(parts: list[_Emit]) -> _Emit:
    def emit(compiler: "_Compiler", then: int) -> int:
        for part in reversed(parts):
            then = compiler.emit(part, then)
        return then

    return emit


def _choice(ways: list[_Emit]) -> _Emit:
    if len(ways) == 1:
        return ways[0]
    return lambda compiler, then: compiler.append(Fork(tuple(compiler.emit(way, then) for way in ways)))


def _repetition(atom: _Emit, low: int, high: int | None) -> _Emit:
    def emit(compiler: "_Compiler", then: int) -> int:
        if high is None:
            then = compiler.loop(atom, then)
        else:
            after = then
            for _ in range(high - low):
                then = compiler.append(Fork((compiler.emit(atom, then), after)))
        for _ in range(low):
            then = compiler.emit(atom, then)
        return then

    return emit


class _Compiler:
    """Collects the states, from the last one to the first."""

    def __init__(self, whole: _Emit) -> None:
        self._states: list[State] = [Found()]
        self._work = 0
        self._first = self.emit(whole, 0)

    def pattern(self) -> BytePattern:
        return BytePattern(tuple(self._states), self._first)

    def emit(self, part: _Emit, then: int) -> int:
        self._work += 1
        if self._work > _MOST_WORK:
            raise _PatternError("too many repetitions")
        return part(self, then)

    def append(self, state: State) -> int:
        if len(self._states) >= _MOST_STATES:
            raise _PatternError("too many repetitions")
        self._states.append(state)
        return len(self._states) - 1

    def loop(self, part: _Emit, then: int) -> int:
        """Append a part that may repeat before it continues."""
        at = self.append(Fork(()))
        self._states[at] = Fork((self.emit(part, at), then))
        return at
