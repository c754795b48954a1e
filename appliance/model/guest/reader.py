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

    def many(self, key: str, read: Callable[[str], T]) -> tuple[T, ...]:
        """Return those values of a list that are right."""
        found = parts(self.said.get(key, ""), read)
        for message in found.wrong:
            self.refuse(key, message)
        return found.right

    def refuse(self, key: str, message: str) -> None:
        """Keep a problem of a property."""
        self.problems.append(GuestProblem(key=key, message=message))
