"""Where the log lines of a process go: its standard output, or a file that the configuration names."""

import contextlib
import os
import time
from functools import cache
from typing import Final

from appliance.net.logging.log_file import LogFile
from appliance.net.logging.output import STDOUT, output

_AGAIN: Final = 1.0  # seconds after which a file is tried again that could not be opened


class LogSink:
    """What structlog writes to: it loses lines rather than wait or raise, one write(2) for each line."""

    def __init__(self) -> None:
        self.dropped = 0
        self._output = output(STDOUT)
        self._file: LogFile | None = None
        self._wanted: str | None = None
        self._again_at = 0.0

    @property
    def journal(self) -> bool:
        """Return whether journald reads the next line."""
        return self._file is None and self._output.journal

    @property
    def terminal(self) -> bool:
        """Return whether the next line goes to a terminal."""
        return self._file is None and os.isatty(STDOUT)

    def direct(self, path: str | None) -> None:
        """Write to a file from now on; to standard output for None, and while the file cannot be opened."""
        if path == self._wanted:
            return
        if self._file is not None:
            self._file.close()
        self._wanted, self._file = path, None
        self._open()

    def write(self, text: str) -> None:
        """Write a line, or count it in `dropped`."""
        if self._file is None and self._wanted is not None and time.monotonic() >= self._again_at:
            self._open()
        try:
            (self._file or self._output).write(text.encode(errors="replace"))
        except OSError:
            self.dropped += 1

    def _open(self) -> None:
        self._again_at = time.monotonic() + _AGAIN
        if self._wanted is not None:
            with contextlib.suppress(OSError):
                self._file = LogFile(self._wanted)

    @property
    def missing(self) -> str | None:
        """Return the file that lines should go to and do not, None while all is as configured."""
        return self._wanted if self._file is None else None

    def flush(self) -> None:
        """Do nothing: every line is written at once, and structlog wants the method."""


@cache
def lines() -> LogSink:
    """Return the one sink of this process: loggers that exist already follow it to another file."""
    return LogSink()
