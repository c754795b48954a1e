"""To which frontend and server a forwarded connection belongs: its mark has the server's number.

A server that has left the configuration may have connections for long. So the owner of a number is remembered
until the number has another owner.
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
        """Store the present owners; others are kept."""
        self._by_number |= owners

    def of_mark(self, mark: int) -> Owner | None:
        """Return the owner of connections with this mark, None if that was before our start."""
        return self._by_number.get(mark ^ MARK)
