"""Lists in guest properties: the correct parts, and a message for each other part."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_SEPARATORS: Final = re.compile(r"[,;\s]+")
_QUOTES: Final = ('""', "''", "``", "\u201c\u201d", "\u2018\u2019", "\u201e\u201c", "\u00ab\u00bb")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts(Generic[T]):
    """The correct parts of a list, and a message for each other part."""

    right: tuple[T, ...]
    wrong: tuple[str, ...]


def unquoted(text: str) -> str:
    """Return a text without the quotes around it, which a script or a document may have added."""
    for opening, closing in _QUOTES:
        inner = text.removeprefix(opening).removesuffix(closing)
        if len(inner) == len(text) - 2 and not {opening, closing} & set(inner):
            return inner.strip()
    return text


def parts(text: str, read: Callable[[str], T]) -> Parts[T]:
    """Read a list with commas, semicolons or white space between its parts; the same part counts once."""
    return read_each((unquoted(each) for each in _SEPARATORS.split(text) if each), read)


def read_each(texts: Iterable[str], read: Callable[[str], T]) -> Parts[T]:
    """Read separated parts; `read` raises ValueError with the message."""
    right: dict[T, None] = {}
    wrong: list[str] = []
    for text in texts:
        try:
            right.setdefault(read(text))
        except ValueError as error:
            wrong.append(str(error))
    return Parts(right=tuple(right), wrong=tuple(wrong))
