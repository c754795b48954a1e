"""The times and timers of RFC 9568 sections 6.1 and 6.2 (RFC 3768 for version 2), in seconds."""

from enum import Enum
from typing import Final, Literal

from appliance.core.vrrp.election_messages import Cause

SHORTEST_ADVERT: Final = 0.01
"""The least interval that version 3 can say; an advertisement that says 0 means no less."""


def skew_time(version: Literal[2, 3], *, priority: int, interval: float) -> float:
    """Return Skew_Time: (256 - priority) / 256 of the active's interval, in version 2 of a second."""
    unit = interval if version == 3 else 1.0
    return (256 - priority) * unit / 256


def active_down_interval(version: Literal[2, 3], *, priority: int, interval: float, adverts: int) -> float:
    """Return Active_Down_Interval; `adverts` is 3 in the RFCs, keepalived's `down_timer_adverts` here."""
    return adverts * interval + skew_time(version, priority=priority, interval=interval)


class ClaimHold(Enum):
    """What puts a claim off, whatever was heard: a conflict, or tracks that have not spoken yet."""

    CONFLICT = "conflict"
    TRACKS = "tracks"


class ActiveDownTimer:
    """Active_Down_Timer (RFC 9568 section 6.2) as a deadline, with two things that put a claim off.

    `hold` puts off every claim; `listen` is for the start, and only preemption heeds it later: when an active
    leaves, its addresses are free.
    """

    __slots__ = ("_due", "_holds", "_postponed", "cause", "listens_until")

    def __init__(self) -> None:
        self.cause = Cause.ACTIVE_DOWN
        self._due = 0.0
        self._holds: dict[ClaimHold, float] = {}
        self.listens_until = 0.0
        self._postponed = False

    @property
    def deadline(self) -> float:
        """When the wait is over."""
        return max(self._due, *self._holds.values()) if self._holds else self._due

    def listen(self, until: float) -> None:
        """Listen until then, before anything else."""
        self.listens_until = until
        self.start(until, Cause.ACTIVE_DOWN)

    def start(self, until: float, cause: Cause) -> None:
        """Wait anew, until then."""
        self._due = until
        self.cause = cause
        self._postponed = False

    def extend(self, until: float) -> None:
        """Wait until then, if that is later."""
        self._due = max(self._due, until)

    def shorten(self, until: float, cause: Cause) -> None:
        """Wait until then, if that is earlier, and not before the end of listening; for this reason."""
        until = max(until, self.listens_until)
        self.cause = cause
        if until < self._due:
            self.start(until, cause)

    def restart(self, until: float) -> None:
        """Wait until then instead, for the same reason."""
        self._due = max(until, self.listens_until)

    def hold(self, until: float, why: ClaimHold) -> None:
        """Do not claim before then; a time that has passed ends it."""
        self._holds[why] = until

    def postpones(self, now: float, *, late: float, interval: float) -> bool:
        """Whether the wait goes on for an interval though it is over; once for each wait.

        When this process could not run for longer than an interval, silence proves nothing.
        """
        if late <= interval or self._postponed:
            return False
        self._postponed = True
        self._due = now + interval
        return True


class AdverTimer:
    """Adver_Timer (RFC 9568 section 6.2): when an active sends its next advertisement."""

    __slots__ = ("deadline",)

    def __init__(self) -> None:
        self.deadline = 0.0

    def start(self, until: float) -> None:
        """Send the next advertisement at this time."""
        self.deadline = until

    def shorten(self, until: float) -> None:
        """Send the next advertisement at this time, if that is earlier."""
        self.deadline = min(self.deadline, until)

    def advance(self, now: float, *, interval: float) -> None:
        """Send the next advertisement one interval after the present one was due.

        It counts from the deadline and not from `now`, so that late wake-ups do not add up. Who has slept for
        a whole interval counts from `now`: a burst of the missed advertisements would help nobody.
        """
        due = self.deadline
        self.deadline = (due if now - due < interval else now) + interval
