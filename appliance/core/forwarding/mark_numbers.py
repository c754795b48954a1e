"""The numbers of frontends and of their servers in the kernel: in names of its rules, in connection marks.

A number stays with its owner as long as it is in the kernel's rules, over restarts too: the comments of its
counters show the next process what each number is. A new one follows from the owner's name, so that the marks
of connections mean the same on all nodes (`sync`), and a number that was given up is rarely used for another
owner while connections with its mark are open.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

MARK: Final = 0x6C620000
"""The prefix of all our connection marks ("lb"); the number is in the lower half."""

MARK_MASK: Final = 0xFFFF0000
"""The bits that identify a mark as ours."""

_MOST: Final = 0xFFFF
_COMMENT: Final = 120  # bytes: the kernel's limit is 128 with its own (NFTNL_UDATA_COMMENT_MAXLEN)


class NumbersExhausted(Exception):  # noqa: N818  # it is the numbers that are
    """There are no more numbers: no more frontends and servers can be forwarded."""


class Numbers:
    """The numbers by the names of their owners."""

    def __init__(self) -> None:
        self._by_tag: dict[str, int] = {}

    def restore(self, comments: Mapping[int, str]) -> None:
        """Read the numbers in use from the comments of the kernel's counters."""
        self._by_tag |= {comment[:_TAG_SIZE]: number for number, comment in comments.items()}

    def number(self, name: str) -> int:
        """Return the number of an owner, a new one if it has none; raises NumbersExhausted."""
        tag = _tag(name)
        found = self._by_tag.get(tag)
        if found is None:
            found = self._by_tag[tag] = self._free(tag)
        return found

    def keep(self, names: Iterable[str]) -> None:
        """Give up the numbers of all others."""
        kept = set(map(_tag, names))
        self._by_tag = {tag: number for tag, number in self._by_tag.items() if tag in kept}

    def _free(self, tag: str) -> int:
        taken = set(self._by_tag.values())
        first = int(tag, 16)
        for step in range(_MOST):
            number = (first + step) % _MOST + 1
            if number not in taken:
                return number
        raise NumbersExhausted(f"more than {_MOST} frontends and servers")


def comment(name: str) -> str:
    """Return the comment that names the owner of a kernel's counter, for `restore` and for readers."""
    readable = "".join(each if each.isalnum() or each in "./:[]-_ " else "?" for each in name)
    return f"{_tag(name)} {readable}".encode("ascii", "replace")[:_COMMENT].decode()


_TAG_SIZE: Final = 16


def _tag(name: str) -> str:
    """Return a text of limited length that is unique to a name, however long."""
    return hashlib.blake2b(name.encode(), digest_size=_TAG_SIZE // 2).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A server in a frontend: names as in the configuration, `server` as POOL/SERVER."""

    frontend: str
    server: str


class Owners:
    """The owners by their numbers, at most as many as there are numbers.

    A server that has left the configuration may have connections for long. So the owner of a number is
    remembered until the number has another owner.
    """

    def __init__(self) -> None:
        self._by_number: dict[int, Owner] = {}

    def learn(self, owners: Mapping[int, Owner]) -> None:
        """Store the present owners; others are kept."""
        self._by_number |= owners

    def of_mark(self, mark: int) -> Owner | None:
        """Return the owner of connections with this mark, None if that was before our start."""
        return self._by_number.get(mark ^ MARK)
