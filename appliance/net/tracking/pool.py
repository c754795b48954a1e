"""Tracks a pool of this appliance: up while the health board shows a server of it as up."""

import time
from pathlib import Path
from typing import Final

import gevent

from appliance.model.server_states import ServerState
from appliance.net.boards.board_layout import BoardError
from appliance.net.boards.board_reader import BoardReader
from appliance.net.tracking.track_check import LookResult, TrackCheck
from appliance.wire.boards.health_board import BoardFormatError, ServerHealthRecord, decode

_GLANCE: Final = 0.05
"""Seconds between reads of the board's count of changes, as in workers."""


class PoolTrack(TrackCheck):
    """The check of one pool. Each check opens the board again: it may be another file by now."""

    def __init__(self, pool: str, board: Path) -> None:
        self._pool = pool
        self._path = board
        self._board: BoardReader | None = None
        self._changes = 0
        self._awaits = True

    def look(self) -> LookResult:
        """Return whether a server is up."""
        self.close()
        self._awaits = not self._path.exists()
        if self._awaits:
            return LookResult(up=False, detail="there is no health board")
        try:
            self._board = BoardReader(self._path)
            payload, self._changes = self._board.published()
            servers = decode(payload).servers if payload else ()
        except (BoardError, BoardFormatError) as error:
            return LookResult(up=False, detail=f"the health board cannot be read: {error}")
        return _judge([each for each in servers if each.pool == self._pool])

    def wait(self, seconds: float) -> None:
        """Wait this many seconds, or until the board has changed, appeared or disappeared."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            gevent.sleep(min(left, _GLANCE))  # first, so that others always get their turn
            if self._moved():
                return

    def close(self) -> None:
        """Unmap the board."""
        if self._board is not None:
            self._board.close()
        self._board = None

    def _moved(self) -> bool:
        if self._board is None:
            return self._awaits and self._path.exists()
        try:
            return self._board.changes != self._changes
        except BoardError:
            return True


def _judge(servers: list[ServerHealthRecord]) -> LookResult:
    if not servers:
        return LookResult(up=False, detail="health has none of its servers")
    up = sum(each.state is ServerState.UP for each in servers)
    return LookResult(up=up > 0, detail=f"{up} of {len(servers)} servers up")
