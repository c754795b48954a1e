"""How a Backup waits for the active: until when, why it claims then, and what puts the claim off."""

from enum import Enum

from appliance.core.vrrp.election_effects import Cause


class ClaimHold(Enum):
    """What puts a claim off, whatever was heard: a conflict, or tracks that have not spoken yet."""

    CONFLICT = "conflict"
    TRACKS = "tracks"


class ActiveDownTimer:
    """Active_Down_Timer (RFC 9568 section 6.2) as a deadline, with two things that put a claim off.

    `hold` puts off every claim; `listen` is for the start, and only preemption heeds it later: when an active
    leaves, its addresses are free.
    """

    __slots__ = ("_due", "_holds", "_postponed", "listens_until", "why")

    def __init__(self) -> None:
        self.why = Cause.ACTIVE_DOWN
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
        self.begin(until, Cause.ACTIVE_DOWN)

    def begin(self, until: float, why: Cause) -> None:
        """Wait anew, until then."""
        self._due = until
        self.why = why
        self._postponed = False

    def extend(self, until: float) -> None:
        """Wait until then, if that is later."""
        self._due = max(self._due, until)

    def hasten(self, until: float, why: Cause) -> None:
        """Wait until then, if that is earlier, and not before the end of listening; for this reason."""
        until = max(until, self.listens_until)
        self.why = why
        if until < self._due:
            self.begin(until, why)

    def replace(self, until: float) -> None:
        """Wait until then instead, for the same reason."""
        self._due = max(until, self.listens_until)

    def hold(self, until: float, why: ClaimHold) -> None:
        """Do not claim before then; a time that has passed ends it."""
        self._holds[why] = until

    def excuses(self, now: float, *, late: float, interval: float) -> bool:
        """Whether the wait goes on for an interval though it is over; once for each wait.

        When this process could not run for longer than an interval, silence proves nothing.
        """
        if late <= interval or self._postponed:
            return False
        self._postponed = True
        self._due = now + interval
        return True
