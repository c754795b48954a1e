"""Follows the health board: verdicts of `health` reach the pools of this worker at the next tick."""

from collections.abc import Callable, Mapping
from pathlib import Path

from appliance.core.balancing.pool_queue import Waiter
from appliance.core.balancing.pool_state import Health
from appliance.net.boards.board_content import BoardFollower
from appliance.wire.boards.health_board import VerdictReader, Verdicts
from appliance.worker import pool_changes
from appliance.worker.relay.backend import Backend
from appliance.worker.relay.traffic import Traffic


class HealthFollower:
    """A worker's reader of the health board at `path`; `backends` are the worker's and stay current.

    `leaves` is that of `pool_changes.follow`.
    """

    def __init__(
        self,
        path: Path,
        traffic: Traffic,
        backends: Mapping[str, Backend],
        *,
        leaves: Callable[[Waiter], bool],
        fault: Callable[[Exception], None],
    ) -> None:
        self._traffic, self._backends, self._leaves, self._fault = traffic, backends, leaves, fault
        self._board = BoardFollower(path, VerdictReader())
        self._given: Verdicts = {}

    def forget(self) -> None:
        """Give the pools all records again at the next read: there are new pools."""
        self._board.forget()
        self._given = {}

    @property
    def has_news(self) -> bool:
        """Return whether `look` has something to give to the pools."""
        return self._board.is_changed

    def look(self) -> None:
        """Give verdicts to each pool where one has changed since the last read, or where sessions wait.

        The worker calls it on each tick. Without a board servers stay as they are: `health` publishes as soon
        as it can.
        """
        board = self._board.changed()
        if board is None:
            return
        before, self._given = self._given, board
        for name, backend in self._backends.items():
            if backend.pool.queued or name not in before or board.get(name) != before[name]:
                self._observe(backend, board.get(name, {}))

    def _observe(self, backend: Backend, verdicts: Health) -> None:
        try:
            lost = backend.pool.observe(verdicts)
            pool_changes.follow(self._traffic, backend, lost, leaves=self._leaves)
        except Exception as error:  # noqa: BLE001  # the boundary: a bug in one pool costs no other its news
            self._fault(error)
