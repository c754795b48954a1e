"""The times of a worker's end: until when its sessions may last, and until when it still accepts."""


class Draining:
    """When a worker drains, and how far it has come. All times but `deadline` are monotonic seconds."""

    def __init__(self) -> None:
        self.deadline = 0.0
        """Unix seconds, for people and later masters; 0.0 while not draining."""
        self._cut_at = 0.0
        self._accept_until = 0.0
        self._leave_at = 0.0

    def begin(self, deadline: float, *, late: float, now: float, wall: float) -> None:
        """Drain until `deadline`, but accept for `late` seconds more; `wall` is the time now in Unix seconds.

        From here on only the monotonic clock counts: setting the wall clock later neither cuts sessions short
        nor prolongs them.
        """
        self.deadline = deadline
        self._cut_at = now + (deadline - wall)
        self._accept_until = now + late

    def is_over(self, now: float) -> bool:
        """Whether the deadline has passed: the remaining sessions must be ended."""
        return now >= self._cut_at

    def accept_for(self, seconds: float, *, now: float) -> None:
        """Stop accepting after `seconds`, or earlier if that was planned."""
        self._accept_until = min(self._accept_until, now + seconds)

    def accepts_late(self, now: float) -> float:
        """Return for how many seconds it still accepts."""
        return max(0.0, self._accept_until - now)

    def leave(self, patience: float, *, now: float) -> None:
        """Drain in `patience` seconds, unless a master adopts this worker first."""
        self._leave_at = now + patience

    def stay(self) -> None:
        """Forget `leave`: a master has adopted this worker."""
        self._leave_at = 0.0

    def leaves(self, now: float) -> bool:
        """Whether no master has adopted this worker in time."""
        return 0.0 < self._leave_at <= now
