"""Follows the health board: what `health` finds out reaches the pools of forwarded frontends."""

from pathlib import Path

from appliance.core.balancing.pool_state import Health
from appliance.net.boards.board_layout import BoardError
from appliance.net.boards.board_reader import BoardReader
from appliance.wire.boards import health_board
from appliance.wire.boards.health_board import BoardFormatError

_FOLLOW_LOOKS = 20  # looks between two checks whether the board's file was removed and made anew


class Verdicts:
    """A reader of the health board at `path`, which may come later and be made anew."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._board: BoardReader | None = None
        self._seen: int | None = None
        self._looks = 0

    def changed(self) -> Health | None:
        """Return the records where they have changed since the last look, None where they have not.

        Without a board servers stay as they are: `health` publishes as soon as it can.
        """
        self._looks += 1
        try:
            if self._board is None:
                self._board = BoardReader(self._path)
            elif self._looks % _FOLLOW_LOOKS == 0:
                self._board.follow()
            if self._board.changes == self._seen:
                return None
            payload, changes = self._board.published()
            board = health_board.decode(payload)
        except (BoardError, BoardFormatError):
            return None
        self._seen = changes
        return {(each.pool, each.server): each for each in board.servers}

    def close(self) -> None:
        """Unmap the board."""
        if self._board is not None:
            self._board.close()
        self._board = None
