"""The decoded content of a board, read once, or after each change."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, TypeVar

from appliance.net.boards.board_layout import BoardError
from appliance.net.boards.board_reader import BoardReader
from appliance.net.logging.lean_structlog import FilteringBoundLogger
from appliance.wire.boards.health_board import BoardFormatError

_Content = TypeVar("_Content")

_FOLLOW_LOOKS: Final = 20
"""Reads between two checks whether the board's file was removed and recreated."""


def content(
    path: Path, decode: Callable[[bytes], _Content], log: FilteringBoundLogger | None = None
) -> _Content | None:
    """Return what was published last; None without a board, if empty, or damaged, which `log` gets."""
    try:
        with BoardReader(path) as board:
            payload = board.read()
        return decode(payload) if payload else None
    except (BoardError, BoardFormatError) as error:
        if log is not None and path.exists():
            log.warning("board-unreadable", reason=str(error))
        return None


class BoardFollower(Generic[_Content]):
    """A reader of the board at `path`, which may appear later and be recreated."""

    def __init__(self, path: Path, decode: Callable[[bytes], _Content]) -> None:
        self._path, self._decode = path, decode
        self._board: BoardReader | None = None
        self._seen: int | None = None
        self._looks = 0

    def forget(self) -> None:
        """Make the next `changed` return the content even if it has not changed."""
        self._seen = None

    @property
    def is_changed(self) -> bool:
        """Return whether the count of changes is another one than at the last read."""
        with contextlib.suppress(BoardError):
            return self._board is not None and self._board.changes != self._seen
        return False

    def changed(self) -> _Content | None:
        """Return the content if it changed since the last read; None if not, or without a board.

        The count of changes is one word of shared memory: usually nothing else is read.
        """
        self._looks += 1
        try:
            if self._board is None:
                self._board = BoardReader(self._path)
            elif self._looks % _FOLLOW_LOOKS == 0 and self._board.follow():
                self._seen = None  # a recreated file starts a new count
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
