"""One tracked thing over time: results go in, its verdict and the time of the next check come out.

`rise` and `fall` are keepalived's. The first result alone decides, whichever it is: a start need not wait for
`rise` checks. Checks never overlap: the next one starts an interval after the start of the last one, or at
once after its end when it took longer. One that has run for `timeout` seconds has failed.
"""

from appliance.model.virtual_router import Track


class Rise:
    """The verdict of one track; `up` None is no verdict yet. `streak` results in a row were against it."""

    __slots__ = ("fall", "rise", "since", "streak", "up")

    def __init__(self, *, rise: int, fall: int) -> None:
        self.rise = rise
        self.fall = fall
        self.up: bool | None = None
        self.since: float | None = None
        self.streak = 0

    def result(self, up: bool, now: float) -> bool | None:  # noqa: FBT001  # the result is the argument
        """Take a result; return the new verdict when it has changed, else None."""
        if up is self.up:
            self.streak = 0
            return None
        self.streak += 1
        if self.up is not None and self.streak < (self.rise if up else self.fall):
            return None
        self.up = up
        self.since = now
        self.streak = 0
        return up


class Pace:
    """When one track's checks start and have taken too long. `running` is the start of a check, or None."""

    __slots__ = ("_next", "interval", "running", "timeout")

    def __init__(self, *, interval: float, timeout: float, now: float) -> None:
        self.interval = interval
        self.timeout = timeout
        self.running: float | None = None
        self._next = now

    @property
    def deadline(self) -> float:
        """When the next check starts, or the running one has taken too long."""
        return self._next if self.running is None else self.running + self.timeout

    def due(self, now: float) -> bool:
        """Whether a check is to be started now; never while one is running."""
        return self.running is None and now >= self._next

    def overdue(self, now: float) -> bool:
        """Whether the running check has taken too long: it has failed, and is to be ended."""
        return self.running is not None and now >= self.running + self.timeout

    def begin(self, now: float) -> None:
        """Note that a check was started."""
        self.running = now

    def end(self, now: float) -> None:
        """Note that the check has ended, one way or the other."""
        if self.running is not None:
            self._next = max(self.running + self.interval, now)
            self.running = None


class Tracking:
    """The verdict and the pace of one track, and the value that its last check gave."""

    __slots__ = ("detail", "pace", "rise", "track", "value")

    def __init__(self, track: Track, *, now: float) -> None:
        self.track = track
        self.rise = Rise(rise=track.rise, fall=track.fall)
        self.pace = Pace(interval=track.interval, timeout=track.timeout, now=now)
        self.value = 0
        self.detail = ""

    def conclude(self, *, up: bool, value: int = 0, detail: str = "", now: float) -> bool:
        """Take the result of the check that has ended; return whether there is news: verdict or value."""
        self.pace.end(now)
        before, self.value = self.value, value
        self.detail = detail
        return self.rise.result(up, now) is not None or value != before
