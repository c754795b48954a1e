"""gevent's pool of threads, for calls that may hang in a file system or a user directory."""

import errno
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from gevent import get_hub
from gevent.event import AsyncResult

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def begin(work: Callable[_Given, _Result], *given: _Given.args, **named: _Given.kwargs) -> AsyncResult:
    """Start work in a thread and return its AsyncResult; raises OSError if no thread can start.

    `work` must not raise: gevent would print it.
    """
    try:
        return get_hub().threadpool.spawn(work, *given, **named)
    except RuntimeError as error:  # the limit of processes is reached
        raise OSError(errno.EAGAIN, str(error)) from error
