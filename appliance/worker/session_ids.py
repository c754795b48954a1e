"""The ids by which operators name sessions: program, generation, worker and number where they began."""

from collections.abc import Collection
from typing import Final

from appliance.wire.lines.worker_arguments import WorkerArguments
from appliance.worker.relay.all_sessions import Expiring
from appliance.worker.relay.session.session import Session

_SPARE: Final = 1000
"""Ids of ended sessions that may be kept."""


class SessionIds:
    """The ids of one worker. A session that came from another worker keeps its id from there."""

    def __init__(self, arguments: WorkerArguments) -> None:
        self._prefix = f"{arguments.program}-{arguments.generation}-{arguments.index}"
        self._kept: dict[int, str] = {}

    def of(self, number: int) -> str:
        """Return the id of the session with this number."""
        return self._kept.get(number) or f"{self._prefix}-{number}"

    def keep(self, number: int, name: str) -> None:
        """Note the id that a session has brought with it."""
        self._kept[number] = name

    def forget_ended(self, live: Collection[Expiring]) -> None:
        """Forget the ids of all other sessions, once that is worth examining all of them."""
        if len(self._kept) <= _SPARE + 2 * len(live):
            return
        numbers = {each.number for each in live if isinstance(each, Session)}
        self._kept = {number: name for number, name in self._kept.items() if number in numbers}
