r"""The text lines of the reload socket: `reload`, with `--force` or `--dry-run`, `stop`, and everything else.

The protocol is that of OpenShift's HAProxy and keepalived pods (`while read -r line`): bytes at the end of
the connection without \n are not a line. Blanks around the word and the \r of a \r\n are ignored.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

LINE_LIMIT: Final = 4096
"""Longest line, bytes; a longer one is skipped to its end, and refused once."""

_SHOWN: Final = 80  # bytes of an unknown line that answer and log quote


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadLine:
    """The line `reload`; `forced` is `--force`: problems with what this node serves now do not prevent it."""

    forced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalLine:
    """The line `reload --dry-run`: report what a reload would do and what prevents it; change nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopLine:
    """The line `stop`, of OpenShift's keepalived pod: leave all virtual IPs until the next `reload`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownLine:
    """Any other line; `reason` is for the answer and the log."""

    reason: str


SocketLine = ReloadLine | RehearsalLine | StopLine | UnknownLine
"""The request in one line."""


class ReloadLines:
    """Splits the chunks of one connection into lines, with bounded memory."""

    def __init__(self) -> None:
        self._pending = b""
        self._skipping = False

    @property
    def unfinished(self) -> bool:
        """Return whether a line is incomplete."""
        return bool(self._pending) or self._skipping

    def feed(self, chunk: bytes) -> Iterator[SocketLine]:
        """Yield each line that `chunk` completes, and each that it makes too long."""
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            yield from self._extend(piece)
            if not self._skipping:
                yield _meaning(self._pending)
            self._pending, self._skipping = b"", False
        yield from self._extend(rest)

    def _extend(self, piece: bytes) -> Iterator[UnknownLine]:
        if self._skipping:
            return
        self._pending += piece
        if len(self._pending) > LINE_LIMIT:
            self._pending, self._skipping = b"", True
            yield UnknownLine(reason=f"line of more than {LINE_LIMIT} bytes")


def _meaning(line: bytes) -> SocketLine:
    words = line.split()
    if words == [b"stop"]:
        return StopLine()
    if words == [b"reload", b"--dry-run"]:
        return RehearsalLine()
    if words in ([b"reload"], [b"reload", b"--force"]):
        return ReloadLine(forced=len(words) > 1)
    shown = line.strip()[:_SHOWN].decode("utf-8", errors="backslashreplace")
    return UnknownLine(
        reason=f"unknown command {shown!r}; known: reload, reload --force, reload --dry-run, stop"
    )
