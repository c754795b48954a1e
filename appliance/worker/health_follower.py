"""Follows the health board: verdicts of `health` reach the pools of this worker at the next tick."""

from collections.abc import Callable, Mapping
from pathlib import Path

from appliance.core.balancing.pool_queue import Waiter
from appliance.net.boards.board_content import BoardFollower
from appliance.wire.boards import health_board
from appliance.wire.boards.health_board import ServerHealthRecord
from appliance.worker import pool_changes
from appliance.worker.relay.backend import Backend
from appliance.worker.relay.traffic import Traffic


class HealthFollower:
    """Reads the board at `path` for this worker's `backends`; `leaves` is as in `pool_changes.follow`."""

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
        self._board = BoardFollower(path, health_board.decode)

    def forget(self) -> None:
        """Give the pools all records again at the next read: there are new pools."""
        self._board.forget()

    @property
    def has_news(self) -> bool:
        """Return whether `look` has something to give to the pools."""
        return self._board.is_changed

    def look(self) -> None:
        """Give the pools the board's records if they have changed since the last read.

        The worker calls it on each tick. Without a board servers stay as they are: `health` publishes as soon
        as it can.
        """
        board = self._board.changed()
        if board is None:
            return
        records = board.by_name()
        for backend in self._backends.values():
            self._observe(backend, records)

    def _observe(self, backend: Backend, records: Mapping[tuple[str, str], ServerHealthRecord]) -> None:
        try:
            lost = backend.pool.observe(records)
            pool_changes.follow(self._traffic, backend, lost, leaves=self._leaves)
        except Exception as error:  # noqa: BLE001  # the boundary: a bug in one pool costs no other its news
            self._fault(error)
