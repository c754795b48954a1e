"""Closes what takes the kernel long to close, in a thread beside a loop.

The end of a packet socket waits until no processor looks at it any more: 16 ms, measured. With the shortest
intervals a Backup takes over in twice that time.
"""

import contextlib
import os
import threading
from queue import SimpleQueue
from typing import Protocol


class Closable(Protocol):
    """A descriptor's owner; `close` must not raise."""

    def close(self) -> None:
        """Close it."""


class Closer:
    """Owns what it is given from then on; its thread starts with the first and dies with the process."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Closable] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def close(self, what: Closable) -> None:
        """Have it closed soon."""
        if self._thread is None:
            like = threading.get_native_id()
            self._thread = threading.Thread(target=self._run, args=(like,), name="closer", daemon=True)
            self._thread.start()
        self._queue.put(what)

    def _run(self, like: int) -> None:
        # Scheduled as the loop's thread is: the interpreter's lock may be held by a thread that waits for its
        # turn on a busy machine, and then the loop waits as long.
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.sched_getscheduler(like), os.sched_getparam(like))
        while True:
            self._queue.get().close()
