"""Whose a connection is that the kernel forwards: its mark has the number of a server in a frontend.

A server that has left the configuration may have connections for long. So who had a number is remembered, as
long as nobody else has it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from appliance.core.forwarding.numbers import MARK


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A server in a frontend: names as in the configuration, `server` as POOL/SERVER."""

    frontend: str
    server: str


class Owners:
    """The owners by their numbers, at most as many as there are numbers."""

    def __init__(self) -> None:
        self._by_number: dict[int, Owner] = {}

    def learn(self, owners: Mapping[int, Owner]) -> None:
        """Take those of now; others stay known."""
        self._by_number |= owners

    def of_mark(self, mark: int) -> Owner | None:
        """Return whose connections have a mark, None where that was before our time."""
        return self._by_number.get(mark ^ MARK)
