"""The part of a processor that a thread takes at the most, whatever an API server sends."""

import time
from typing import Final

_SLICE: Final = 0.01  # seconds of work after which it rests
_REST: Final = 3.0  # times as long as it has worked
_LONGEST: Final = 0.5  # seconds


class WorkShare:
    """The work of the thread that makes it."""

    def __init__(self) -> None:
        self._begun = time.thread_time()

    def rest(self) -> None:
        """Rest, where there was enough work since the last time."""
        worked = time.thread_time() - self._begun
        if worked >= _SLICE:
            time.sleep(min(_REST * worked, _LONGEST))
            self._begun = time.thread_time()
