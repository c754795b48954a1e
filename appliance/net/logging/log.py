"""Logging for programs: fixed event names with fields, JSON lines or text, to standard output or a file.

A worker may outlive the master and the supervisord whose output it shares, and a pipe, socket or terminal
without a reader fills up. A line that cannot be written at once is counted in `dropped` and discarded,
because connections matter more than logs; `lines-dropped` reports the number later. Endlessly repeated lines
are written some times a minute (`core.log_rate_limit`); the event `lines-left-out` reports how many more
there were. Lines of level debug, and those with their own switch, are not limited.
"""

import contextlib
import os
import time
from functools import cache
from typing import Any, Final

from appliance.model.snapshot.snapshot import Log as Settings
from appliance.net.logging.journal import SyslogSeverity, marked
from appliance.net.logging.lean_structlog import EventDict, FilteringBoundLogger, structlog
from appliance.net.logging.line_limiter import limiter, unfiltered
from appliance.net.logging.log_file import LogFile, objection
from appliance.net.logging.output import STDOUT, output

_AGAIN: Final = 1.0  # seconds until a file that could not be opened is tried again


class LogSink:
    """The output of structlog: it loses lines rather than block or raise, with one write(2) per line."""

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
        """Write to a file from now on; to standard output if None, or while the file cannot be opened."""
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
        """Return the configured file while it cannot be used, None otherwise."""
        return self._wanted if self._file is None else None

    def flush(self) -> None:
        """Do nothing: every line is written at once, and structlog requires the method."""


@cache
def lines() -> LogSink:
    """Return the one sink of this process: existing loggers follow it to another file."""
    return LogSink()


Logger = FilteringBoundLogger
"""What `configure` returns."""

_LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_SEVERITIES: Final = {
    "debug": SyslogSeverity.DEBUG,
    "info": SyslogSeverity.INFO,
    "warning": SyslogSeverity.WARNING,
    "error": SyslogSeverity.ERROR,
}
_DROPPED: Final = "lines-dropped"


def obey(program: str, settings: Settings) -> FilteringBoundLogger:
    """Set up logging from the section `log` of a configuration, and return the program's logger."""
    return configure(program, level=settings.level, form=settings.format, file=settings.file)


def configure(program: str, *, level: str, form: str, file: str | None = None) -> FilteringBoundLogger:
    """Set logging up for this process and return its logger, bound to the program's name."""
    lines().direct(file)
    renderer = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=lines().terminal)
    )
    structlog.configure(
        processors=[
            _count_dropped,
            limiter(),
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
            _levelled,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(file=lines()),  # type: ignore[arg-type]  # all it uses is write and flush
        cache_logger_on_first_use=False,
    )
    logger: FilteringBoundLogger = structlog.get_logger(program=program)
    if (missing := lines().missing) is not None:
        logger.error("log-file-unusable", path=missing, reason=objection(missing), instead="standard output")
    return logger


def _count_dropped(_: object, __: str, line: EventDict) -> EventDict:
    """Write before a line how many lines were dropped before it.

    The sink cannot do this itself: structlog holds its lock while the sink writes.
    """
    sink = lines()
    if (count := sink.dropped) and line["event"] != _DROPPED:
        unfiltered(structlog.get_logger()).warning(_DROPPED, count=count)
        sink.dropped = count if sink.dropped > count else 0
    return line


def _levelled(_: object, method: str, line: Any) -> str:  # noqa: ANN401  # structlog says so of any processor
    """Return a line with its level in journald's form, if journald reads it."""
    return marked(line, _SEVERITIES[method]) if lines().journal else line
