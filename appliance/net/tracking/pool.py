"""Tracks a pool of this appliance: up while the health board has a server of it that is up."""

import time
from pathlib import Path
from typing import Final

import gevent

from appliance.model.server_states import ServerState
from appliance.net.boards.boards import BoardError, BoardReader
from appliance.net.tracking.tracked_check import Seen
from appliance.wire.boards.health_board import BoardFormatError, ServerHealthRecord, decode

_GLANCE: Final = 0.05
"""Seconds between looks at whether the board has moved, as workers do it."""


class PoolTrack:
    """One pool on the board. Each look opens the board anew, in case it is not the one it was."""

    def __init__(self, pool: str, board: Path) -> None:
        self._pool = pool
        self._path = board
        self._board: BoardReader | None = None
        self._changes = 0
        self._awaits = True

    def look(self) -> Seen:
        """Return whether a server is up."""
        self.close()
        self._awaits = not self._path.exists()
        if self._awaits:
            return Seen(up=False, detail="there is no health board")
        try:
            self._board = BoardReader(self._path)
            payload, self._changes = self._board.published()
            servers = decode(payload).servers if payload else ()
        except (BoardError, BoardFormatError) as error:
            return Seen(up=False, detail=f"the health board cannot be read: {error}")
        return _judge([each for each in servers if each.pool == self._pool])

    def wait(self, seconds: float) -> None:
        """Wait, not longer than until the board has changed, come or gone."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            gevent.sleep(min(left, _GLANCE))  # first of all, so that others get their turn in any case
            if self._moved():
                return

    def close(self) -> None:
        """Let go of the board."""
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


def _judge(servers: list[ServerHealthRecord]) -> Seen:
    if not servers:
        return Seen(up=False, detail="health knows no server of it")
    up = sum(each.state is ServerState.UP for each in servers)
    return Seen(up=up > 0, detail=f"{up} of {len(servers)} servers up")
