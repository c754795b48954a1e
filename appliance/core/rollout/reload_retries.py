"""When a reload that was refused for a passing reason is tried again: at growing pauses, a few times.

Passing means that nothing is wrong with the files: a program went away while it prepared, a worker was
killed, another program had a port. The client may request the reload only once, as OpenShift's monitor does,
so the same files are tried again without a request.
"""

from collections import Counter
from typing import Final

PAUSES: Final = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 60.0, 60.0, 60.0)
"""Seconds before each try: a program is back in one or two, but a port may be in use for minutes."""


LOSSES: Final = 3
"""Tries in which one program may be lost: once or twice may be bad luck."""


class UnaskedReload:
    """Stores contents by their digests, and what cannot be read by the reason.

    A client that keeps its connection open learns of a restart only when it writes into the broken pipe; it
    reconnects, finds its file unchanged and sends nothing (OpenShift's monitor does so). So the file is read
    now and then. Content found twice in a row is complete, and content judged once is not judged again: an
    error in it is reported once, and its correction is different content.
    """

    def __init__(self) -> None:
        self._seen: str | None = None
        self._judged: str | None = None

    def judged(self, digest: str) -> None:
        """Remember the content that a reload has accepted or refused, by its digest."""
        self._judged = digest

    def settled(self, digest: str) -> bool:
        """Return whether the present content is that of the last look, and was never judged."""
        before, self._seen = self._seen, digest
        return digest == before and digest != self._judged


class ReloadRetries:
    """The tries of one refused reload; `tries` is how many there were, `due_at` when the next one is."""

    def __init__(self) -> None:
        self.tries = 0
        self.due_at: float | None = None
        self._lost: Counter[str] = Counter()

    def forget(self) -> None:
        """Start again: there was a request, or nothing is refused now."""
        self.tries, self.due_at, self._lost = 0, None, Counter()

    def refused(self, now: float, *, lost: frozenset[str] = frozenset()) -> float | None:
        """Return the seconds until the next try, None after the last.

        If a program is `lost` repeatedly, the files are the cause: no further try costs it once more.
        """
        self._lost.update(lost)
        if self.tries == len(PAUSES) or LOSSES in self._lost.values():
            self.due_at = None
            return None
        pause = PAUSES[self.tries]
        self.due_at = now + pause
        return pause

    def is_due(self, now: float) -> bool:
        """Return whether to try now."""
        return self.due_at is not None and now >= self.due_at

    def begin(self) -> None:
        """Count a try that is made now; the next one is due only if this one is refused too."""
        self.tries, self.due_at = self.tries + 1, None
