"""Closes descriptors whose close takes the kernel long, in a thread next to a loop.

close(2) of a packet socket waits until no processor uses the socket (an RCU grace period): 16 ms, measured.
With the shortest advertisement intervals a backup takes over in twice that time.
"""

import contextlib
import os
import threading
from queue import SimpleQueue
from typing import Final, Protocol

_STACK: Final = 512 << 10  # bytes: where memory is locked, all of it is


class Closable(Protocol):
    """The owner of a descriptor."""

    def close(self) -> None:
        """Close the descriptor; must not raise."""


class Closer:
    """Closes objects in a thread that starts now and ends with the process.

    Create it before the loop's thread becomes real-time: who starts a thread waits until it runs, and on a
    busy machine an ordinary one waits for a processor.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[Closable] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="closer", daemon=True)
        usual = threading.stack_size(_STACK)
        self._thread.start()
        threading.stack_size(usual)

    def close(self, what: Closable) -> None:
        """Close it soon; the caller must no longer use it."""
        self._queue.put(what)

    def schedule_as_caller(self) -> None:
        """Schedule it like the calling thread, the loop's.

        An ordinary thread may hold the interpreter's lock without getting the processor on a busy machine:
        the loop, real-time or not, would wait for it (priority inversion).
        """
        with contextlib.suppress(OSError):
            number = self._thread.native_id or 0
            os.sched_setscheduler(number, os.sched_getscheduler(0), os.sched_getparam(0))

    def _run(self) -> None:
        while True:
            self._queue.get().close()
