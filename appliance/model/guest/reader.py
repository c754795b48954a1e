"""Reads guest properties one after the other, and keeps all that is wrong with them."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from appliance.model.guest.parts import parts
from appliance.model.guest.report import GuestProblem

T = TypeVar("T")


class Reader:
    """The properties of one machine as they were given, and what has been found about them so far."""

    def __init__(self, said: Mapping[str, str]) -> None:
        self.said = said
        self.problems: list[GuestProblem] = []
        self.refusals = 0
        self.notes: list[str] = []

    def one(self, key: str, read: Callable[[str], T]) -> T | None:
        """Return a value, None where it was not given or is wrong."""
        if key not in self.said:
            return None
        try:
            return read(self.said[key])
        except ValueError as error:
            self.refuse(key, str(error))
            return None

    def many(self, key: str, read: Callable[[str], T], *, text: str | None = None) -> tuple[T, ...]:
        """Return those values of a list that are right; `text` is the list where it is not as was said."""
        found = parts(self.said.get(key, "") if text is None else text, read)
        for message in found.wrong:
            self.refuse(key, message)
        return found.right

    def refuse(self, key: str, message: str) -> None:
        """Keep a problem of a property, that nothing can be made of."""
        self.refusals += 1
        self.warn(key, message)

    def warn(self, key: str | None, message: str) -> None:
        """Keep a problem that somebody has to look at, and that hinders nothing."""
        self.problems.append(GuestProblem(key=key, message=message))
