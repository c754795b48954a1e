"""Waiting for a condition instead of sleeping for a time.

A wait is bounded in seconds of a quiet machine: while more processes want to run than there are processors,
a second counts for less, as everything that is waited for gets less done in it.

`LB_TEST_PATIENCE=10` makes every wait ten times as long as it may be elsewhere: for an emulated machine.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

_Value = TypeVar("_Value")

_PAUSE: Final = 0.02
_PATIENCE: Final = float(os.environ.get("LB_TEST_PATIENCE", "1"))
_PROCESSORS: Final = len(os.sched_getaffinity(0))
_LOAD: Final = Path("/proc/loadavg")

_BUSIEST: Final = 8.0
"""A loaded machine makes a wait at most so many times as long: what never happens has to end a test."""


class Late(AssertionError):  # noqa: N818  # reads as what happened in a test's report
    """What was waited for did not happen in time."""


def patient(seconds: float) -> float:
    """Return the limit, in seconds, of a blocking call that takes at most so many on a quiet machine."""
    return seconds * _PATIENCE * _BUSIEST


def processor_share(load: str, processors: int = _PROCESSORS) -> float:
    """Return which part of a processor a busy process gets, by a line of /proc/loadavg (proc(5))."""
    return min(1.0, processors / max(1, int(load.split()[3].partition("/")[0])))


def _share() -> float:
    try:
        return processor_share(_LOAD.read_text())
    except OSError:  # a test that has used up its descriptors
        return 1.0


def wait_until(
    condition: Callable[[], _Value],
    *,
    what: str,
    timeout: float = 15.0,
    pause: float = _PAUSE,
    sleep: Callable[[float], None] = time.sleep,
) -> _Value:
    """Return the first true value of `condition`; raises Late after `timeout` seconds of a quiet machine.

    It looks every `pause` seconds; tests whose greenlets have to run in between use `greenlets.until`.
    """
    timeout *= _PATIENCE
    start = last = time.monotonic()
    waited = 0.0
    while not (value := condition()):
        now = time.monotonic()
        waited += (now - last) * _share()
        last = now
        if waited > timeout or now - start > _BUSIEST * timeout:
            raise Late(f"after {now - start:.1f} s still not: {what} (last seen: {value!r})")
        sleep(pause * _PATIENCE)
    return value
