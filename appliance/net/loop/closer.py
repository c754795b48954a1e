"""Closes descriptors whose close takes the kernel long, in a thread next to a loop.

close(2) of a packet socket waits until no processor uses the socket (an RCU grace period): 16 ms, measured.
With the shortest advertisement intervals a backup takes over in twice that time.
"""

import contextlib
import os
import threading
from queue import SimpleQueue
from typing import Protocol


class Closable(Protocol):
    """The owner of a descriptor."""

    def close(self) -> None:
        """Close the descriptor; must not raise."""


class Closer:
    """Closes objects in a thread that starts with the first and ends with the process."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Closable] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def close(self, what: Closable) -> None:
        """Close it soon; the caller must no longer use it."""
        if self._thread is None:
            like = threading.get_native_id()
            self._thread = threading.Thread(target=self._run, args=(like,), name="closer", daemon=True)
            self._thread.start()
        self._queue.put(what)

    def _run(self, like: int) -> None:
        # Scheduled like the loop's thread. An ordinary thread may hold the interpreter's lock without getting
        # the processor on a busy machine: the loop, real-time or not, would wait for it (priority inversion).
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.sched_getscheduler(like), os.sched_getparam(like))
        while True:
            self._queue.get().close()
