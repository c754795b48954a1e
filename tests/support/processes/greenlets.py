"""Waiting for a condition while greenlets of the test's own process run."""

from collections.abc import Callable
from typing import Final, TypeVar

import gevent
from support.processes.waiting import wait_until

_Value = TypeVar("_Value")
_PAUSE: Final = 0.01


def until(
    condition: Callable[[], _Value],
    *,
    what: str = "the condition holds",
    timeout: float = 15.0,
    pause: float = _PAUSE,
) -> _Value:
    """Return the first true value of `condition`; raises Late after `timeout` seconds, naming `what`."""
    return wait_until(condition, what=what, timeout=timeout, pause=pause, sleep=gevent.sleep)
