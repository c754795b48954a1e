"""How a program tells its events: the newest ones, as lines on a board of its own in shared memory.

To tell one is a copy in memory. So a proxy or `vrrp` never waits for a disk or for a reader, and what was
told stays readable when its teller is killed in the next moment. `reload` collects the events of all boards
and keeps them (net/events/event_keeper).
"""

import contextlib
import os
import time
from collections import deque
from dataclasses import replace
from enum import Enum, auto
from pathlib import Path
from typing import Final

from appliance.model.operator_events import OperatorEvent
from appliance.net.boards.board_layout import BoardError
from appliance.net.boards.board_reader import BoardReader
from appliance.net.boards.board_writer import BoardWriter
from appliance.wire.lines import event_lines

SUFFIX: Final = ".events"
"""How the names of these boards end."""

_MOST: Final = 400  # events; the collector looks ten times a second
_SIZE: Final = 96 << 10  # bytes of their lines
_FIRST_SIZE: Final = 4 << 10  # most programs never need more


class Mapped(Enum):
    """When the board is in a process's memory.

    A file that somebody cuts short kills who has it mapped (SIGBUS): supervisord, the end of which is the end
    of all, has it WHILE_TELLING only, for the price of a new file for each event.
    """

    ALWAYS = auto()
    WHILE_TELLING = auto()


class EventBoard:
    """The events of one program. The board is made with the first event, and goes on with what is on it."""

    def __init__(self, path: Path, program: str, *, mapped: Mapped = Mapped.ALWAYS) -> None:
        self._mapped = mapped
        self._path = path
        self._program = program
        self._board: BoardWriter | None = None
        self._lines: deque[bytes] = deque(maxlen=_MOST)
        self._last = 0

    def __call__(self, event: OperatorEvent) -> None:
        """Tell an event. Where the board cannot be written it is told with the next one: nobody waits."""
        self._last = max(self._last + 1, time.time_ns())
        told = replace(
            event, program=event.program or self._program, id=event.id or f"{self._last:x}-{os.getpid():x}"
        )
        try:
            self._lines.append(event_lines.encode(told))
            board = self._board = self._board or self._opened()
            board.publish(event_lines.newest(self._lines, _SIZE), changed=True)
        except OSError:
            return  # no room, or no directory: what happened is in the log all the same
        if self._mapped is Mapped.WHILE_TELLING:
            self.close()

    def close(self, *, unlink: bool = False) -> None:
        """Unmap the board, and remove it where nobody will want it."""
        if self._board is not None:
            self._board.close(unlink=unlink)
            self._board = None

    def _opened(self) -> BoardWriter:
        with contextlib.suppress(BoardError), BoardReader(self._path) as last:
            there, ours = last.read().splitlines(keepends=True), frozenset(self._lines)
            # A last line without an end is damaged, and would take the next one with it.
            older = [each for each in there if each.endswith(b"\n") and each not in ours]
            self._lines = deque((*older, *self._lines), maxlen=_MOST)
        return BoardWriter(self._path, capacity=_FIRST_SIZE)
