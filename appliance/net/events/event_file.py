"""The file that keeps events across restarts: JSON lines in two parts of limited size.

When the newer part is full, it replaces the older one. A line truncated by a full disk or a kill loses only
that event: the next line begins after a line end.
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
"""Most bytes of one part: ten thousand events."""

_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class EventFile:
    """The kept events at a path; anything there that is not a file is set aside."""

    def __init__(self, path: Path, *, part: int = PART) -> None:
        self._path = path
        self._part = part

    def append(self, events: Iterable[OperatorEvent]) -> None:
        """Append events in one write; raises OSError if not all could be written."""
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
        """Begin a new part; if that fails, the events are kept anyway, and the next write tries again."""
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
    """Return the time since which `tail` has all events: minus infinity if none was removed yet."""
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
