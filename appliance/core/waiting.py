"""How a Backup waits for the active: until when, why it claims then, and what puts the claim off."""

from appliance.core.election_effects import Cause


class Waiting:
    """Active_Down_Timer (RFC 9568 section 6.2) as a deadline, with two things that put a claim off.

    `hold` is for conflicts; `listen` is for the start, and only preemption heeds it later: when an active
    leaves, its addresses are free.
    """

    __slots__ = ("_held_until", "_listen_until", "_postponed", "deadline", "why")

    def __init__(self) -> None:
        self.deadline = 0.0
        self.why = Cause.ACTIVE_DOWN
        self._held_until = 0.0
        self._listen_until = 0.0
        self._postponed = False

    def listen(self, until: float) -> None:
        """Listen until then, before anything else."""
        self._listen_until = until
        self.begin(until, Cause.ACTIVE_DOWN)

    def begin(self, until: float, why: Cause) -> None:
        """Wait anew, until then."""
        self.deadline = max(until, self._held_until)
        self.why = why
        self._postponed = False

    def extend(self, until: float) -> None:
        """Wait until then, if that is later."""
        self.deadline = max(self.deadline, until)

    def hasten(self, until: float, why: Cause) -> None:
        """Wait until then, if that is earlier, and not before the end of listening."""
        until = max(until, self._listen_until)
        if until < self.deadline:
            self.begin(until, why)

    def replace(self, until: float) -> None:
        """Wait until then instead, for the same reason."""
        self.deadline = max(until, self._listen_until, self._held_until)

    def hold(self, until: float) -> None:
        """Do not claim before then; a time that has passed ends it."""
        self._held_until = until
        self.extend(until)

    def excuses(self, now: float, *, late: float, interval: float) -> bool:
        """Whether the wait goes on for an interval though it is over; once for each wait.

        When this process could not run for longer than an interval, silence proves nothing.
        """
        if late <= interval or self._postponed:
            return False
        self._postponed = True
        self.deadline = now + interval
        return True
