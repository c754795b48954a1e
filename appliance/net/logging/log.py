"""Logging for programs: fixed event names with fields, JSON lines or text, to standard output or a file.

A worker may outlive the master and the supervisord whose output it shares, and what nobody reads is full one
day, be it a pipe, a socket or a terminal. A line that cannot be written at once is counted in `dropped` and
forgotten, because no log is worth a connection; `lines-dropped` says later how many there were.
What repeats without end is written some times a minute (core.log_rate); the event `lines-left-out` says how
many more there were. Lines of level debug, and those with a switch of their own, are not limited.
"""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from appliance.core.log_rate_limit import INTERVAL, LogRateLimit
from appliance.model.snapshot.snapshot import Log as Settings
from appliance.net.logging.journal import SyslogSeverity, marked
from appliance.net.logging.log_file import LogFile, objection
from appliance.net.logging.output import STDOUT, output


@contextlib.contextmanager
def _without(package: str) -> Iterator[None]:
    """Have imports not find a package: None in its place is Python's own word for that."""
    known = sys.modules.get(package)
    sys.modules[package] = None  # type: ignore[assignment]  # the type knows of modules only
    try:
        yield
    finally:
        del sys.modules[package]
        if known:
            sys.modules[package] = known


# structlog imports rich where there is one, for tracebacks that no program prints: an eighth of a start.
with _without("rich"):
    import structlog
    from structlog.typing import EventDict, FilteringBoundLogger

Logger = FilteringBoundLogger
"""What `configure` returns."""

_LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_ALL: Final = 0
_SEVERITIES: Final = {
    "debug": SyslogSeverity.DEBUG,
    "info": SyslogSeverity.INFO,
    "warning": SyslogSeverity.WARNING,
    "error": SyslogSeverity.ERROR,
}
_UNLIMITED: Final = "_unlimited"
_LEFT_OUT: Final = "lines-left-out"
_DROPPED: Final = "lines-dropped"
_AGAIN: Final = 1.0  # seconds after which a file is tried again that could not be opened


class Lines:
    """A file for structlog that loses lines rather than wait or raise; one write call for each line."""

    def __init__(self) -> None:
        self.dropped = 0
        self._output = output(STDOUT)
        self._file: LogFile | None = None
        self._wanted: str | None = None
        self._again_at = 0.0

    @property
    def journal(self) -> bool:
        """Say whether journald reads the next line."""
        return self._file is None and self._output.journal

    @property
    def terminal(self) -> bool:
        """Say whether somebody watches."""
        return self._file is None and os.isatty(STDOUT)

    def direct(self, path: str | None) -> None:
        """Write to a file from now on, or to standard output: for None, and while the file cannot be had."""
        if path == self._wanted:
            return
        if self._file is not None:
            self._file.close()
        self._wanted, self._file = path, None
        self._open()

    def reopen(self) -> None:
        """Have the file that was put aside be made anew."""
        if self._file is not None:
            self._file.reopen()

    def write(self, text: str) -> None:
        """Write text, or count it as dropped."""
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
        """Return the file that lines should go to and do not."""
        return self._wanted if self._file is None else None

    def flush(self) -> None:
        """Do nothing: every line is written at once."""


class Limiter:
    """A processor of structlog that drops lines above their rate, and says later how many those were.

    It says so before the next line, whichever that is, or when `tick` comes, whichever is first.
    """

    def __init__(self, rate: LogRateLimit) -> None:
        self._rate = rate

    @property
    def deadline(self) -> float | None:
        """Return when there is something to say, in seconds of time.monotonic(); None for nothing."""
        return self._rate.deadline

    def tick(self, now: float) -> None:
        """Say what was left out in the intervals that are over."""
        for each in self._rate.due(now):
            fields = {"of" if name == "event" else name: said for name, said in each.kind}
            unfiltered(structlog.get_logger()).warning(_LEFT_OUT, **fields, count=each.count)

    def follow(self, sleep: Callable[[float], object]) -> None:
        """Tick for ever, for a program whose greenlets sleep so."""
        while True:
            sleep(INTERVAL / 4)
            self.tick(time.monotonic())

    def __call__(self, _: object, method: str, line: EventDict) -> EventDict:
        """Return the line, or raise DropEvent."""
        if line.pop(_UNLIMITED, False) or method == "debug" or line["event"] == _LEFT_OUT:
            return line
        now = time.monotonic()
        self.tick(now)
        if not self._rate.admits(line["event"], line, now):
            raise structlog.DropEvent
        return line


@cache
def limiter() -> Limiter:
    """Return this process's one limiter: what is said of a flood outlives a change of `configure`."""
    return Limiter(LogRateLimit())


@cache
def lines() -> Lines:
    """Return where this process's lines go: all loggers that are there follow a change of it."""
    return Lines()


def obey(program: str, settings: Settings) -> FilteringBoundLogger:
    """Set logging up as a configuration says."""
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
            _confess,
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


def _confess(_: object, __: str, line: EventDict) -> EventDict:
    """Say before a line how many before it were dropped; a sink cannot, as it is locked while it writes."""
    sink = lines()
    if (count := sink.dropped) and line["event"] != _DROPPED:
        unfiltered(structlog.get_logger()).warning(_DROPPED, count=count)
        sink.dropped = count if sink.dropped > count else 0
    return line


def _levelled(_: object, method: str, line: Any) -> str:  # noqa: ANN401  # structlog says so of any processor
    """Return a line with its level in the form of journald, where that reads it."""
    return marked(line, _SEVERITIES[method]) if lines().journal else line


def unfiltered(logger: FilteringBoundLogger) -> FilteringBoundLogger:
    """Return the logger without a level and a limit, for lines that have a switch of their own."""
    everything = structlog.make_filtering_bound_logger(_ALL)
    bound: FilteringBoundLogger = structlog.wrap_logger(None, wrapper_class=everything).bind(
        **structlog.get_context(logger), **{_UNLIMITED: True}
    )
    return bound
