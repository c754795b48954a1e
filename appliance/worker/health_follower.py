"""Follows the health board: what `health` finds out reaches the pools of this worker at the next tick."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from appliance.net.boards.board_layout import BoardError
from appliance.net.boards.board_reader import BoardReader
from appliance.wire.boards import health_board
from appliance.wire.boards.health_board import BoardFormatError, ServerHealthRecord
from appliance.worker import pool_changes
from appliance.worker.relay.backend import Backend
from appliance.worker.relay.traffic import Traffic

_FOLLOW_LOOKS: Final = 20
"""Looks between two checks whether the board's file was removed and made anew."""

_NOTHING_SEEN: Final = -1


class HealthFollower:
    """A worker's reader of the health board at `path`; `backends` are the worker's and stay current."""

    def __init__(
        self,
        path: Path,
        traffic: Traffic,
        backends: Mapping[str, Backend],
        *,
        fault: Callable[[Exception], None],
    ) -> None:
        self._path, self._traffic, self._backends, self._fault = path, traffic, backends, fault
        self._board: BoardReader | None = None
        self._seen_changes = _NOTHING_SEEN
        self._looks = 0

    def forget(self) -> None:
        """Give the pools all records again at the next look: there are new pools."""
        self._seen_changes = _NOTHING_SEEN

    def look(self) -> None:
        """Give the pools the board's records where they have changed since the last look.

        The worker calls it on each tick. The count of changes is one word of shared memory: mostly nothing
        more is read.
        """
        self._looks += 1
        try:
            if self._board is None:
                self._board = BoardReader(self._path)
            elif self._looks % _FOLLOW_LOOKS == 0:
                self._board.follow()
            if self._board.changes == self._seen_changes:
                return
            payload, changes = self._board.published()
            board = health_board.decode(payload)
        except (BoardError, BoardFormatError):
            return  # not there yet: servers stay as they are, `health` publishes as soon as it can
        records = {(server.pool, server.server): server for server in board.servers}
        for backend in self._backends.values():
            self._observe(backend, records)
        self._seen_changes = changes

    def _observe(self, backend: Backend, records: Mapping[tuple[str, str], ServerHealthRecord]) -> None:
        try:
            pool_changes.follow(self._traffic, backend, backend.pool.observe(records))
        except Exception as error:  # noqa: BLE001  # the boundary: a bug in one pool costs no other its news
            self._fault(error)
