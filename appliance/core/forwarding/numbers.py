"""The numbers of frontends and of their servers in the kernel: in names of its rules, in connection marks.

A number stays with its owner as long as the kernel's rules have it, over restarts too: by the comments of
its counters the next process sees what each number is. One that has been given up is not used again soon,
because connections with its mark may be open still.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final

MARK: Final = 0x6C620000
"""What all our connection marks begin with ("lb"); the number is in the lower half."""

MARK_MASK: Final = 0xFFFF0000
"""The bits that say that a mark is ours."""

_MOST: Final = 0xFFFF
_COMMENT: Final = 120  # bytes: the kernel's limit is 128 with its own (NFTNL_UDATA_COMMENT_MAXLEN)


class NumbersExhausted(Exception):  # noqa: N818  # it is the numbers that are
    """There are no more numbers: as many frontends and servers cannot be forwarded."""


class Numbers:
    """The numbers by the names of their owners."""

    def __init__(self) -> None:
        self._by_tag: dict[str, int] = {}
        self._last = 0

    def restore(self, comments: Mapping[int, str]) -> None:
        """Learn from the kernel which numbers are taken, by the comments of their counters."""
        self._by_tag |= {comment[:_TAG_SIZE]: number for number, comment in comments.items()}
        self._last = max((self._last, *comments))

    def number(self, name: str) -> int:
        """Return the number of an owner, a new one where it has none; raises NumbersExhausted."""
        tag = _tag(name)
        found = self._by_tag.get(tag)
        if found is None:
            found = self._by_tag[tag] = self._last = self._next()
        return found

    def keep(self, names: Iterable[str]) -> None:
        """Give up the numbers of all others."""
        kept = set(map(_tag, names))
        self._by_tag = {tag: number for tag, number in self._by_tag.items() if tag in kept}

    def _next(self) -> int:
        taken = set(self._by_tag.values())
        for step in range(_MOST):
            number = (self._last + step) % _MOST + 1
            if number not in taken:
                return number
        raise NumbersExhausted(f"more than {_MOST} frontends and servers")


def comment(name: str) -> str:
    """Return the comment by which the kernel's counter says whose it is, for `restore` and for people."""
    readable = "".join(each if each.isalnum() or each in "./:[]-_ " else "?" for each in name)
    return f"{_tag(name)} {readable}".encode("ascii", "replace")[:_COMMENT].decode()


_TAG_SIZE: Final = 16


def _tag(name: str) -> str:
    """Return what tells names apart however long they are."""
    return hashlib.blake2b(name.encode(), digest_size=_TAG_SIZE // 2).hexdigest()
