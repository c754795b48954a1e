"""What a board says, decoded: once, or whenever it has changed."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, TypeVar

from structlog.typing import FilteringBoundLogger

from appliance.net.boards.board_layout import BoardError
from appliance.net.boards.board_reader import BoardReader
from appliance.wire.boards.health_board import BoardFormatError

_Content = TypeVar("_Content")

_FOLLOW_LOOKS: Final = 20
"""Looks between two checks whether the board's file was removed and made anew."""


def content(
    path: Path, decode: Callable[[bytes], _Content], log: FilteringBoundLogger | None = None
) -> _Content | None:
    """Return what was published last; None where there is no board, or nothing on it, or damage.

    Damage is logged where there is a `log`.
    """
    try:
        with BoardReader(path) as board:
            payload = board.read()
        return decode(payload) if payload else None
    except (BoardError, BoardFormatError) as error:
        if log is not None and path.exists():
            log.warning("board-unreadable", reason=str(error))
        return None


class BoardFollower(Generic[_Content]):
    """A reader of the board at `path`, which may come later and be made anew."""

    def __init__(self, path: Path, decode: Callable[[bytes], _Content]) -> None:
        self._path, self._decode = path, decode
        self._board: BoardReader | None = None
        self._seen: int | None = None
        self._looks = 0

    def forget(self) -> None:
        """Return the content at the next look even if it has not changed."""
        self._seen = None

    def changed(self) -> _Content | None:
        """Return the content where it has changed since the last look; None where not, or without a board.

        The count of changes is one word of shared memory: mostly nothing more is read.
        """
        self._looks += 1
        try:
            if self._board is None:
                self._board = BoardReader(self._path)
            elif self._looks % _FOLLOW_LOOKS == 0 and self._board.follow():
                self._seen = None  # the count of a file that somebody removed begins anew
            if self._board.changes == self._seen:
                return None
            payload, changes = self._board.published()
            found = self._decode(payload)
        except (BoardError, BoardFormatError):
            return None
        self._seen = changes
        return found

    def close(self) -> None:
        """Unmap the board."""
        if self._board is not None:
            self._board.close()
        self._board = None
