"""The times and timers of RFC 9568 sections 6.1 and 6.2, of RFC 3768 for version 2, in seconds.

A timer is a deadline: its owner reads the deadline, and calls the election's `tick` then.
"""

from enum import Enum
from typing import Final, Literal

from appliance.core.vrrp.election_messages import Cause

SHORTEST_ADVERT: Final = 0.01
"""The least interval, seconds: version 3 counts hundredths (RFC 9568 section 5.2.7). Replaces 0."""


def skew_time(version: Literal[2, 3], *, priority: int, interval: float) -> float:
    """Return Skew_Time: the better the priority of a Backup, the sooner it claims.

    It is (256 - priority) / 256 of the active's interval; in version 2, of one second.
    """
    unit = interval if version == 3 else 1.0
    return (256 - priority) * unit / 256


def active_down_interval(version: Literal[2, 3], *, priority: int, interval: float, adverts: int) -> float:
    """Return Active_Down_Interval; `adverts` is 3 in the RFCs, here keepalived's `down_timer_adverts`."""
    return adverts * interval + skew_time(version, priority=priority, interval=interval)


class ClaimHold(Enum):
    """What delays every claim: an address conflict, or tracks without a first verdict."""

    CONFLICT = "conflict"
    TRACKS = "tracks"


class ActiveDownTimer:
    """Active_Down_Timer (RFC 9568 section 6.2): a Backup claims at its `deadline`, because of `cause`.

    `hold` delays every claim. `listen` is the first wait after the start: keepalived's `vrrp_startup_delay`.
    It delays preemption, too, but not the claim after an active has sent priority 0, which leaves the
    addresses to no router.
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
        """When to claim."""
        return max(self._due, *self._holds.values()) if self._holds else self._due

    def listen(self, until: float) -> None:
        """Start the first wait."""
        self.listens_until = until
        self.start(until, Cause.ACTIVE_DOWN)

    def start(self, until: float, cause: Cause) -> None:
        """Restart, whatever the deadline was."""
        self._due = until
        self.cause = cause
        self._postponed = False

    def extend(self, until: float) -> None:
        """Move the deadline to that time if that is later."""
        self._due = max(self._due, until)

    def shorten(self, until: float, cause: Cause) -> None:
        """Move the deadline to that time if that is earlier, but not into the first wait; set the cause."""
        until = max(until, self.listens_until)
        self.cause = cause
        if until < self._due:
            self.start(until, cause)

    def restart(self, until: float) -> None:
        """Move the deadline to that time, but not before the end of the first wait; the cause stays."""
        self._due = max(until, self.listens_until)

    def hold(self, until: float, why: ClaimHold) -> None:
        """Do not claim before then for this reason; a time in the past ends the hold."""
        self._holds[why] = until

    def postpones(self, now: float, *, late: float, interval: float) -> bool:
        """Wait one more interval if this wake-up is more than an interval late; return whether it does.

        A process that could not run has not read its sockets, or the whole machine stood still: the silence
        does not prove that the active is down. Only once for each wait, or a slow machine would never claim.
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

        It counts from the deadline and not from `now`, so that late wake-ups do not add up. A router that
        slept for a whole interval counts from `now`: a burst of the missed advertisements would help no one.
        """
        due = self.deadline
        self.deadline = (due if now - due < interval else now) + interval
