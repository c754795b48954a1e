"""Waiting for a condition while greenlets of the test's own process run."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

import gevent
from support.processes.waiting import Late

_Value = TypeVar("_Value")
_PAUSE: Final = 0.01


def until(condition: Callable[[], _Value], *, what: str, timeout: float = 15.0) -> _Value:
    """Return the first true value of `condition`; raises Late after `timeout` seconds, naming `what`."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise Late(f"after {timeout:g} s still not: {what} (last seen: {value!r})")
        gevent.sleep(_PAUSE)
    return value
