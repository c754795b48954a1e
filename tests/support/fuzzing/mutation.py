"""Damaged inputs without end: valid ones changed in a few places, spliced, cut and repeated, and garbage."""

import struct
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final

_NUMBERS: Final = tuple(
    struct.pack(order + form, value & (1 << 8 * struct.calcsize(form)) - 1)
    for order in "<>"
    for form in "BHIQ"
    for value in (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, -1, 1 << 63)
)
_WORDS: Final = (
    b"\0",
    b"\n",
    b"\r\n",
    b" ",
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"-",
    b"0",
    b"1e999",
)
_MOST_CHANGES: Final = 6
_GARBAGE: Final = 0.05
"""Share of the inputs that are nothing but random bytes."""

Change = Callable[[bytearray, "Mutator"], None]


class Mutator:
    """Makes inputs from valid ones. `words` are what the format knows; `longest` is in bytes."""

    def __init__(
        self, random: Random, seeds: Sequence[bytes], *, words: Sequence[bytes], longest: int
    ) -> None:
        self.random = random
        self.seeds = seeds
        self.words = (*_WORDS, *words)
        self._longest = longest

    def __iter__(self) -> Iterator[bytes]:
        """Yield the valid inputs, and then damaged ones for ever."""
        yield from self.seeds
        while True:
            yield self._next()

    def _next(self) -> bytes:
        random = self.random
        if random.random() < _GARBAGE:
            return random.randbytes(random.randrange(200))
        data = bytearray(random.choice(self.seeds))
        for _ in range(random.randint(1, _MOST_CHANGES)):
            random.choice(_CHANGES)(data, self)
            del data[self._longest :]
        return bytes(data)

    def place(self, data: bytearray) -> int:
        """Return a place in the data, its end included."""
        return self.random.randint(0, len(data))

    def stretch(self, data: bytearray) -> slice:
        """Return a stretch of the data, short ones more often."""
        start = self.place(data)
        return slice(start, start + self.random.choice((1, 2, 4, 8, 16, len(data))))


def _flip(data: bytearray, mutator: Mutator) -> None:
    if data:
        data[mutator.random.randrange(len(data))] ^= 1 << mutator.random.randrange(8)


def _number(data: bytearray, mutator: Mutator) -> None:
    at, number = mutator.place(data), mutator.random.choice(_NUMBERS)
    data[at : at + len(number)] = number


def _insert_word(data: bytearray, mutator: Mutator) -> None:
    at = mutator.place(data)
    data[at:at] = mutator.random.choice(mutator.words)


def _insert_garbage(data: bytearray, mutator: Mutator) -> None:
    at = mutator.place(data)
    data[at:at] = mutator.random.randbytes(mutator.random.randint(1, 16))


def _delete(data: bytearray, mutator: Mutator) -> None:
    del data[mutator.stretch(data)]


def _cut(data: bytearray, mutator: Mutator) -> None:
    del data[mutator.place(data) :]


def _repeat(data: bytearray, mutator: Mutator) -> None:
    where = mutator.stretch(data)
    data[where.start : where.start] = data[where] * mutator.random.choice((1, 1, 2, 10, 300))


def _splice(data: bytearray, mutator: Mutator) -> None:
    other = bytearray(mutator.random.choice(mutator.seeds))
    data[mutator.place(data) :] = other[mutator.place(other) :]


def _borrow(data: bytearray, mutator: Mutator) -> None:
    other = bytearray(mutator.random.choice(mutator.seeds))
    at = mutator.place(data)
    data[at:at] = other[mutator.stretch(other)]


_CHANGES: Final[tuple[Change, ...]] = (
    _flip,
    _number,
    _insert_word,
    _insert_garbage,
    _delete,
    _cut,
    _repeat,
    _splice,
    _borrow,
)
