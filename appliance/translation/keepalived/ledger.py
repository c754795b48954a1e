"""The record of the outcomes of each line, kept while the file is read and translated."""

import re
from collections.abc import Iterable
from typing import Final

from appliance.model.messages.problems import FilePosition
from appliance.model.messages.quoting import printable
from appliance.translation.translation import LineOutcome, Outcome

_LONGEST_TEXT: Final = 200
_SECRET: Final = re.compile(r"\b(auth_pass|auth_hmac|key|secret|password)\b.*")

_Mark = tuple[Outcome, str | None]


class Ledger:
    """The lines of all files in the order in which they were read, each with its outcomes.

    A line counts as KEPT until another outcome is noted. The same outcome noted twice counts once: a line may
    be read several times (`~SEQ`, variables).
    """

    def __init__(self) -> None:
        self._lines: dict[tuple[str | None, int], tuple[FilePosition, str]] = {}
        self._marks: dict[tuple[str | None, int], dict[_Mark, FilePosition]] = {}
        self._heads: dict[tuple[str | None, int], FilePosition] = {}
        self._refusals = 0

    @property
    def refusals(self) -> int:
        """The number of refusals so far."""
        return self._refusals

    def found(self, place: FilePosition, text: str) -> None:
        """Note that there is a line with this text, whose first word is at `place`."""
        self._lines.setdefault((place.source, place.line), (place, _shown(text)))

    def change(self, place: FilePosition, reason: str) -> None:
        """Note that this is translated into something nearly equal."""
        self._mark(place, Outcome.CHANGED, reason)

    def ignore(self, place: FilePosition, reason: str) -> None:
        """Note that this is safely left out."""
        self._mark(place, Outcome.IGNORED, reason)

    def refuse(self, place: FilePosition, reason: str) -> None:
        """Note that this cannot be translated, why, and what to write instead."""
        self._mark(place, Outcome.REFUSED, reason)

    def mark(self, places: Iterable[FilePosition], outcome: Outcome, reason: str) -> None:
        """Note the same outcome for several places."""
        for place in places:
            self._mark(place, outcome, reason)

    def leave_out(
        self, places: Iterable[FilePosition], reason: str, *, head: FilePosition | None = None
    ) -> None:
        """Note that lines without an outcome of their own are left out with the block they belong to.

        `head` is the first line of that block, if its outcome speaks for all of them.
        """
        for place in places:
            if (place.source, place.line) not in self._marks:
                self._mark(place, Outcome.IGNORED, reason)
                if head is not None:
                    self._heads[place.source, place.line] = head

    def adopt(self, other: "Ledger") -> None:
        """Copy the outcomes from another ledger of the same files."""
        for each in other.outcomes:
            self._mark(each.place, each.outcome, each.reason or "")

    def refused_lines(self) -> dict[str | None, list[int]]:
        """Return the lines refused so far, sorted, by file."""
        found: dict[str | None, list[int]] = {}
        for source, line in sorted(self._marks, key=lambda key: key[1]):
            if any(outcome is Outcome.REFUSED for outcome, _ in self._marks[source, line]):
                found.setdefault(source, []).append(line)
        return found

    @property
    def outcomes(self) -> tuple[LineOutcome, ...]:
        """The outcomes of all lines, in the order of the files."""
        return tuple(
            outcome for key, (place, text) in self._lines.items() for outcome in self._of(key, place, text)
        )

    def _of(self, key: tuple[str | None, int], place: FilePosition, text: str) -> list[LineOutcome]:
        marks = self._marks.get(key)
        if not marks:
            return [LineOutcome(place=place, text=text, outcome=Outcome.KEPT)]
        head = self._heads.get(key) if len(marks) == 1 else None
        return [
            LineOutcome(place=where, text=text, outcome=outcome, reason=reason, left_out_with=head)
            for (outcome, reason), where in marks.items()
        ]

    def _mark(self, place: FilePosition, outcome: Outcome, reason: str) -> None:
        key = (place.source, place.line)
        self._lines.setdefault(key, (place, ""))
        told = printable(reason)
        self._refusals += outcome is Outcome.REFUSED
        self._marks.setdefault(key, {}).setdefault((outcome, told), place)


def _shown(text: str) -> str:
    shown = printable(_SECRET.sub(r"\1 ***", text.strip().replace("\t", " ")))
    return shown if len(shown) <= _LONGEST_TEXT else shown[:_LONGEST_TEXT] + "..."
