"""Reads the event boards of the programs of one runtime directory, each event once."""

import contextlib
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from appliance.model.operator_events import OperatorEvent
from appliance.net.boards.board_layout import BoardError
from appliance.net.boards.board_reader import BoardReader
from appliance.net.events.event_board import SUFFIX
from appliance.wire.lines import event_lines

_NEW_BOARDS: Final = 1.0  # seconds between two searches for new or recreated boards
_MOST_BOARDS: Final = 512
"""Most boards read: a worker without events has none."""


class EventFollower:
    """Yields new events of all boards; `known` are ids of events that are not new."""

    def __init__(self, runtime: Path, *, known: Iterable[str] = ()) -> None:
        self._runtime = runtime
        self._known = frozenset(known)
        self._boards: dict[Path, _FollowedBoard] = {}
        self._look_at = float("-inf")

    def new(self, now: float) -> list[OperatorEvent]:
        """Return the events published since the last call, by time; `now` is monotonic seconds."""
        if now >= self._look_at:
            self._look_at = now + _NEW_BOARDS
            self._find()
        found = [event for board in self._boards.values() for event in board.new()]
        return sorted((each for each in found if each.id not in self._known), key=lambda each: each.when)

    def close(self) -> None:
        """Unmap the boards."""
        for board in self._boards.values():
            board.close()
        self._boards.clear()

    def _find(self) -> None:
        paths = sorted(self._runtime.glob(f"*{SUFFIX}"))[:_MOST_BOARDS]
        for gone in self._boards.keys() - set(paths):
            self._boards.pop(gone).close()
        for path in paths:
            try:
                if path in self._boards:
                    self._boards[path].follow()
                else:
                    self._boards[path] = _FollowedBoard(path)
            except BoardError:  # damaged, or removed a moment ago
                if path in self._boards:
                    self._boards.pop(path).close()


class _FollowedBoard:
    def __init__(self, path: Path) -> None:
        self._reader = BoardReader(path)
        self._changes: int | None = None
        self._last: frozenset[str] = frozenset()

    def follow(self) -> None:
        self._reader.follow()

    def new(self) -> list[OperatorEvent]:
        with contextlib.suppress(BoardError):
            if self._reader.changes == self._changes:
                return []
            published = self._reader.published()
            events = list(event_lines.decode(published.payload))
            before, self._last = self._last, frozenset(each.id for each in events)
            self._changes = published.changes
            return [each for each in events if each.id not in before]
        return []

    def close(self) -> None:
        self._reader.close()


def published(runtime: Path) -> list[OperatorEvent]:
    """Return all events on the boards now, in order."""
    follower = EventFollower(runtime)
    try:
        return follower.new(time.monotonic())
    finally:
        follower.close()
