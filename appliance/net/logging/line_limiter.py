"""The limit on endlessly repeated log lines, and the loggers exempt from it."""

import time
from collections.abc import Callable
from functools import cache
from typing import Final

from appliance.core.log_rate_limit import INTERVAL, LogRateLimit
from appliance.net.logging.lean_structlog import EventDict, FilteringBoundLogger, structlog

_ALL: Final = 0
_UNLIMITED: Final = "_unlimited"
_LEFT_OUT: Final = "lines-left-out"


class LineLimiter:
    """A processor of structlog that drops lines above their rate, and logs their number later.

    It logs the number before the next line of any kind, or at the next `tick`, whichever comes first.
    """

    def __init__(self, rate: LogRateLimit) -> None:
        self._rate = rate

    @property
    def deadline(self) -> float | None:
        """Return when to log a count, in seconds of time.monotonic(); None for never."""
        return self._rate.deadline

    def tick(self, now: float) -> None:
        """Log how many lines were left out in the intervals that ended by `now`, monotonic seconds."""
        for each in self._rate.due(now):
            fields = {"of" if name == "event" else name: value for name, value in each.kind}
            unfiltered(structlog.get_logger()).warning(_LEFT_OUT, **fields, count=each.count)

    def follow(self, sleep: Callable[[float], object]) -> None:
        """Call `tick` for ever; `sleep` is how the program's greenlets or threads sleep."""
        while True:
            sleep(INTERVAL / 4)
            self.tick(time.monotonic())

    def __call__(self, _: object, method: str, line: EventDict) -> EventDict:
        """Return the line; raises DropEvent, structlog's way to drop it. structlog calls this for each."""
        if line.pop(_UNLIMITED, False) or method == "debug" or line["event"] == _LEFT_OUT:
            return line
        now = time.monotonic()
        self.tick(now)
        if not self._rate.admits(line["event"], line, now):
            raise structlog.DropEvent
        return line


@cache
def limiter() -> LineLimiter:
    """Return the one limiter of this process, whose counts survive another `configure`."""
    return LineLimiter(LogRateLimit())


def unfiltered(logger: FilteringBoundLogger) -> FilteringBoundLogger:
    """Return the logger without a level and a limit, for lines with their own switch."""
    everything = structlog.make_filtering_bound_logger(_ALL)
    bound: FilteringBoundLogger = structlog.wrap_logger(None, wrapper_class=everything).bind(
        **structlog.get_context(logger), **{_UNLIMITED: True}
    )
    return bound
