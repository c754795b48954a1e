"""The file in which events are kept over restarts: JSON lines in two parts of limited size.

When the newer part is full it takes the place of the older one. A line that was cut, by a full disk or a
kill, costs that one event: the next line begins after an end of line.
"""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from appliance.model.operator_events import OperatorEvent
from appliance.net.files import state_files
from appliance.wire.lines import event_lines

PART: Final = 2 << 20
"""Bytes of one part at most: ten thousand events."""

_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class EventFile:
    """The kept events at a path; what is no file there is set aside."""

    def __init__(self, path: Path, *, part: int = PART) -> None:
        self._path = path
        self._part = part

    def append(self, events: Iterable[OperatorEvent]) -> None:
        """Append events in one write; raises OSError where not all of it could be written."""
        data = b"".join(map(event_lines.encode, events))
        state_files.clear_way(self._path)
        descriptor = os.open(self._path, _FLAGS, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                data = b"\n" + data
            written = os.write(descriptor, data)
            if written < len(data):
                os.ftruncate(descriptor, size)
                raise OSError(f"only {written} of {len(data)} bytes could be written")
        finally:
            os.close(descriptor)
        if size + len(data) > self._part:
            self._turn()

    def _turn(self) -> None:
        """Begin a new part; where that fails the events are kept all the same: the next write tries it."""
        state_files.clear_way(older(self._path))
        with contextlib.suppress(OSError):
            self._path.replace(older(self._path))


def older(path: Path) -> Path:
    """Return the path of the older part."""
    return path.with_name(f"{path.name}.1")


def tail(path: Path, *, limit: int = PART) -> list[OperatorEvent]:
    """Return the kept events of both parts, oldest first, of the last `limit` bytes of each."""
    return [event for each in (older(path), path) for event in event_lines.decode(_end(each, limit))]


def complete_since(path: Path, events: Iterable[OperatorEvent]) -> float:
    """Return since when all events are among those of `tail`: minus infinity where none is gone yet."""
    with contextlib.suppress(OSError):
        if os.path.lexists(older(path)) or path.stat().st_size > PART:
            return min((each.when for each in events), default=float("-inf"))
    return float("-inf")


def _end(path: Path, limit: int) -> bytes:
    with contextlib.suppress(OSError):
        if state_files.unusual(path):
            return b""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            begin = max(0, os.fstat(descriptor).st_size - limit)
            data = os.pread(descriptor, limit, begin)
        finally:
            os.close(descriptor)
        return data if begin == 0 else data.partition(b"\n")[2]
    return b""
