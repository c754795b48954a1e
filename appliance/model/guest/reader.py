"""Reads guest properties one after the other, and keeps all that is wrong with them."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from appliance.model.guest.parts import parts
from appliance.model.guest.report import GuestProblem

T = TypeVar("T")


class PropertyReader:
    """The properties of one machine as they were given, and what has been found about them so far."""

    def __init__(self, said: Mapping[str, str]) -> None:
        self.said = said
        self.problems: list[GuestProblem] = []
        self.notes: list[str] = []

    def one(self, key: str, read: Callable[[str], T], *, cost: str = "") -> T | None:
        """Return a value, None where it was not given or is wrong; `cost` is what comes of that."""
        if key not in self.said:
            return None
        try:
            return read(self.said[key])
        except ValueError as error:
            self.warn(key, "; ".join(each for each in (str(error), cost) if each))
            return None

    def many(self, key: str, read: Callable[[str], T], *, text: str | None = None) -> tuple[T, ...]:
        """Return those values of a list that are right; `text` is the list where it is not as was said."""
        found = parts(self.said.get(key, "") if text is None else text, read)
        for message in found.wrong:
            self.warn(key, f"{message}; it is left out")
        return found.right

    def warn(self, key: str | None, message: str) -> None:
        """Keep a problem that somebody has to look at."""
        self.problems.append(GuestProblem(key=key, message=message))
