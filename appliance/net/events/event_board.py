"""Publishing of a program's events: the newest ones, as lines on its own board in shared memory.

Publishing is a copy in memory. So a proxy or `vrrp` never waits for a disk or for a reader, and an event
stays readable even if its program is killed right after. `reload` collects the events of all boards and keeps
them (net/events/event_keeper).
"""

import contextlib
import os
import time
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Final

from appliance.model.operator_events import OperatorEvent
from appliance.net.boards.board_layout import BoardError
from appliance.net.boards.board_reader import BoardReader
from appliance.net.boards.board_writer import BoardWriter, UnmappedBoardWriter
from appliance.wire.lines import event_lines

SUFFIX: Final = ".events"
"""The suffix of these boards' names."""

_MOST: Final = 400  # events; the collector reads ten times a second
_SIZE: Final = 96 << 10  # bytes of their lines
_FIRST_SIZE: Final = 4 << 10  # most programs never need more


class EventBoard:
    """One program's events, on a board made with the first one; the content of an existing one is kept.

    Without `mapped` no file is mapped (UnmappedBoardWriter).
    """

    def __init__(self, path: Path, program: str, *, mapped: bool = True) -> None:
        self._mapped = mapped
        self._path = path
        self._program = program
        self._board: BoardWriter | UnmappedBoardWriter | None = None
        self._lines: deque[bytes] = deque(maxlen=_MOST)
        self._last = 0

    def __call__(self, event: OperatorEvent) -> None:
        """Publish an event. If the board cannot be written, the next event publishes both: nothing waits."""
        self._last = max(self._last + 1, time.time_ns())
        published = replace(
            event, program=event.program or self._program, id=event.id or f"{self._last:x}-{os.getpid():x}"
        )
        try:
            self._lines.append(event_lines.encode(published))
            board = self._board = self._board or self._opened()
            board.publish(event_lines.newest(self._lines, _SIZE), changed=True)
        except OSError:
            return  # no room, or no directory: the event is in the log nevertheless

    def close(self, *, unlink: bool = False) -> None:
        """Unmap the board, and remove it if nothing will need it."""
        if self._board is not None:
            self._board.close(unlink=unlink)
            self._board = None

    def _opened(self) -> BoardWriter | UnmappedBoardWriter:
        with contextlib.suppress(BoardError), BoardReader(self._path, mapped=self._mapped) as last:
            there, ours = last.read().splitlines(keepends=True), frozenset(self._lines)
            # A last line without a line end is damaged, and would damage the next one.
            older = [each for each in there if each.endswith(b"\n") and each not in ours]
            self._lines = deque((*older, *self._lines), maxlen=_MOST)
        return (BoardWriter if self._mapped else UnmappedBoardWriter)(self._path, capacity=_FIRST_SIZE)
