"""Waiting for a condition instead of sleeping for a time.

`LB_TEST_PATIENCE=10` makes every wait ten times as long as it may be elsewhere: for an emulated machine.
"""

import os
import time
from collections.abc import Callable
from typing import Final, TypeVar

_Value = TypeVar("_Value")

_PAUSE: Final = 0.02
_PATIENCE: Final = float(os.environ.get("LB_TEST_PATIENCE", "1"))


class Late(AssertionError):  # noqa: N818  # reads as what happened in a test's report
    """What was waited for did not happen in time."""


def patient(seconds: float) -> float:
    """Return how long something may take on this machine that takes at most so many seconds elsewhere."""
    return seconds * _PATIENCE


def wait_until(
    condition: Callable[[], _Value],
    *,
    what: str,
    timeout: float = 15.0,
    pause: float = _PAUSE,
    sleep: Callable[[float], None] = time.sleep,
) -> _Value:
    """Return the first true value of `condition`; raises Late after `timeout` seconds, naming `what`.

    It looks every `pause` seconds; tests whose greenlets have to run in between use `greenlets.until`.
    """
    timeout = patient(timeout)
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise Late(f"after {timeout:g} s still not: {what} (last seen: {value!r})")
        sleep(patient(pause))
    return value
