"""Reads guest properties one by one, and collects the problems with them."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from appliance.model.guest.parts import parts
from appliance.model.guest.report import GuestProblem

T = TypeVar("T")


class PropertyReader:
    """The properties of one machine by key, and the problems and notes about them so far."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.given = given
        self.problems: list[GuestProblem] = []
        self.notes: list[str] = []

    def one(self, key: str, read: Callable[[str], T], *, cost: str = "") -> T | None:
        """Return a value, None if it is absent or wrong; `cost` ends the message of a problem."""
        if key not in self.given:
            return None
        try:
            return read(self.given[key])
        except ValueError as error:
            self.warn(key, "; ".join(each for each in (str(error), cost) if each))
            return None

    def many(self, key: str, read: Callable[[str], T], *, text: str | None = None) -> tuple[T, ...]:
        """Return the correct values of a list; `text` replaces the property's own text."""
        found = parts(self.given.get(key, "") if text is None else text, read)
        for message in found.wrong:
            self.warn(key, f"{message}; it is left out")
        return found.right

    def warn(self, key: str | None, message: str) -> None:
        """Add a problem with a property, None for none of them."""
        self.problems.append(GuestProblem(key=key, message=message))
