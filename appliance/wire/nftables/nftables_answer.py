"""The objects in an answer of nftables: tables, chains and rules, including those of other programs.

Only the necessary is read: their kind, and their fields as they came.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

ANSWER_LIMIT: Final = 1 << 20
"""Longest answer that is read, bytes: no one has that many rules in the requested tables."""

COUNTERS_LIMIT: Final = 64 << 20
"""The same for a list of counters: a server of a frontend has three, of some 300 bytes each."""


class NftablesAnswerError(Exception):
    """The answer is not one of nftables, or not understood."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NftablesObject:
    """One object: its kind (`table`, `chain`, `rule` ...), and its fields."""

    kind: str
    fields: Mapping[str, object]

    @property
    def comment(self) -> str:
        """Return the comment after it, empty for none."""
        found = self.fields.get("comment")
        return found if isinstance(found, str) else ""


class _Answer(msgspec.Struct):
    nftables: list[dict[str, object]]


def decode(answer: bytes, *, limit: int = ANSWER_LIMIT) -> tuple[NftablesObject, ...]:
    """Return the objects in the order of the answer, possibly none; raises NftablesAnswerError."""
    if len(answer) > limit:
        raise NftablesAnswerError(f"{len(answer)} bytes are more than the {limit} that are read")
    if not answer.strip():
        return ()
    try:
        found = msgspec.json.decode(answer, type=_Answer).nftables
    except (ValueError, RecursionError) as error:  # msgspec's own errors are ValueErrors
        raise NftablesAnswerError(str(error)) from error
    return tuple(
        NftablesObject(kind=kind, fields=fields)
        for each in found
        for kind, fields in each.items()
        if isinstance(fields, dict)
    )
