"""When to repeat a failed request to an API server: at growing pauses, not all at once."""

from random import Random
from typing import Final

FIRST: Final = 0.5
"""Seconds of the first wait after every known server has failed."""

LONGEST: Final = 10.0
"""Longest wait in seconds: an API that comes back is found soon, and so few requests are no load."""

REFUSED: Final = 30.0
"""Seconds until the next request for something that we may not read, or that the cluster does not have."""

MOST_RETRY_AFTER: Final = 60.0
"""Most seconds of a server's Retry-After that are waited."""

_JITTER: Final = 0.5  # part of a wait added at most, so that appliances do not ask at once


class Retries:
    """The waits of one resource; `random` lengthens each."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._failures = 0

    def succeeded(self) -> None:
        """Start again with short waits."""
        self._failures = 0

    def failed(self, *, servers: int) -> float:
        """Return the seconds to wait after one more failure; none before each of `servers` has been tried."""
        self._failures += 1
        rounds, tried = divmod(self._failures, max(1, servers))
        if tried or not rounds:
            return 0.0
        return self._with_jitter(min(LONGEST, FIRST * 2.0 ** min(rounds - 1, 10)))

    def after(self, retry_after: float) -> float:
        """Return the seconds to wait if a server has set them (429, 503 with Retry-After)."""
        return self._with_jitter(max(FIRST, min(retry_after, MOST_RETRY_AFTER)))

    def refused(self) -> float:
        """Return the seconds to wait if another try at once would be refused as well."""
        return self._with_jitter(REFUSED)

    def _with_jitter(self, seconds: float) -> float:
        return seconds * (1.0 + _JITTER * self._random.random())
