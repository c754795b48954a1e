"""One directive being read: its line, its section, and methods to report its outcome."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from appliance.model.messages.quoting import shown
from appliance.translation.haproxy.directives.section import Placed, Section
from appliance.translation.haproxy.text.lines import Line
from appliance.translation.haproxy.text.report import Report
from appliance.translation.haproxy.values.quantities import milliseconds, time_alone
from appliance.translation.translation import Outcome

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A line of a section; `first` is the number of words that name the directive (`timeout client`: 2)."""

    line: Line
    section: Section
    report: Report
    first: int = 1

    @property
    def arguments(self) -> tuple[str, ...]:
        """The words after the directive's name."""
        return self.line.texts[self.first :]

    def argument(self, index: int) -> str:
        """Return an argument, "" if there are fewer."""
        return self.line.text(self.first + index)

    @property
    def negated(self) -> bool:
        """Whether `no` or `default` precedes it."""
        return bool(self.line.negation)

    def placed(self, value: _Value, index: int = 0) -> Placed[_Value]:
        """Return a value with the place of its argument; a value that is never used is reported."""
        self.report.settle(self.line.number)
        return Placed(value=value, place=self.line.at(self.first + index if self.arguments else 0))

    def read(self, reader: Callable[[str], _Value], index: int = 0) -> Placed[_Value] | None:
        """Return an argument as a value; if it is invalid, refuse the line and return None."""
        if index >= len(self.arguments):
            self.refuse("a value is missing")
            return None
        try:
            value = reader(self.argument(index))
        except ValueError as error:
            self.refuse(str(error), index)
            return None
        return self.placed(value, index)

    def time(self, index: int = 0) -> Placed[int] | None:
        """Return an argument as milliseconds; ignore what HAProxy ignores after the unit."""
        time, excess = time_alone(self.argument(index))
        if excess:
            self.change(
                f"the time is `{time}`: HAProxy ignores {shown(excess)} after it, with a warning", index
            )
        return self.read(lambda text: milliseconds(time_alone(text)[0]), index)

    def change(self, reason: str, index: int | None = None) -> None:
        """Report that this is translated into something nearly equal."""
        self._note(Outcome.CHANGED, reason, index)

    def ignore(self, reason: str, index: int | None = None) -> None:
        """Report that this is left out, and why that is safe."""
        self._note(Outcome.IGNORED, reason, index)

    def refuse(self, reason: str, index: int | None = None) -> None:
        """Report that this cannot be translated, and what to write instead."""
        self._note(Outcome.REFUSED, reason, index)

    def _note(self, outcome: Outcome, reason: str, index: int | None) -> None:
        place = self.line.place if index is None else self.line.at(self.first + index)
        self.report.add(outcome, place, reason)


Handler = Callable[[Statement], None]
"""Applies a directive to its section. A statement without a reported outcome is kept."""


def ignored(reason: str) -> Handler:
    """Return the handler of a directive that can safely be left out."""
    return lambda statement: statement.ignore(reason)


def changed(reason: str) -> Handler:
    """Return the handler of a directive that we handle differently, without a value to pass on."""
    return lambda statement: statement.change(reason)


def refused(reason: str) -> Handler:
    """Return the handler of a directive that cannot be translated."""
    return lambda statement: statement.refuse(reason)


def kept(statement: Statement) -> None:  # a handler's signature
    """Leave a line as kept."""
