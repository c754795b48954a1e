"""How long each processor of this machine stood still: a yardstick for what no program can be blamed for.

`stalls.py` prints, when its stdin ends, the longest lateness in seconds of a real-time process on each
processor that did nothing but wake up each 5 ms.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

_ATTEMPTS: Final = 5
_PAUSE: Final = 0.005


class Yardstick:
    """One process on each processor. Use it as a context manager; `stop` says the longest stall."""

    def __init__(self) -> None:
        self._processes = [
            subprocess.Popen(
                [sys.executable, str(Path(__file__)), str(processor)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            for processor in sorted(os.sched_getaffinity(0))
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()

    def stop(self) -> float:
        """Return the longest stall of any processor in seconds."""
        return max(float(process.communicate()[0]) for process in self._processes)


def judged(attempt: Callable[[], None], *, longest: float) -> None:
    """Make an attempt; one that fails while a processor stood still for longer than this is made again.

    Where adverts come every 10 ms, a host that gives a virtual machine no processor for 40 ms ends the
    active, whatever the program does. After five such attempts the last one's failure counts.
    """
    for left in reversed(range(_ATTEMPTS)):
        with Yardstick() as yardstick:
            try:
                attempt()
            except AssertionError:
                stalled = yardstick.stop()
                sys.stderr.write(f"machine: stalled {stalled:.4f} s\n")
                if stalled <= longest or not left:
                    raise
                continue
        return


def _measure(processor: int) -> float:
    os.sched_setaffinity(0, [processor])
    # Above what is measured beside it: only the kernel and the host come first.
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(60))
    os.set_blocking(sys.stdin.fileno(), False)
    longest, due = 0.0, time.monotonic() + _PAUSE
    while sys.stdin.buffer.raw.read(1) is None:
        time.sleep(max(0.0, due - time.monotonic()))
        longest = max(longest, time.monotonic() - due)
        due = max(due + _PAUSE, time.monotonic())
    return longest


if __name__ == "__main__":
    sys.stdout.write(str(_measure(int(sys.argv[1]))))
