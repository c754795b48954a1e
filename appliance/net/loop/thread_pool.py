"""gevent's pool of threads: for calls that may hang in a file system or a user directory, and long work."""

import errno
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from gevent import get_hub
from gevent.event import AsyncResult

from appliance.net.process.collection import no_collection

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def begin(work: Callable[_Given, _Result], *given: _Given.args, **named: _Given.kwargs) -> AsyncResult:
    """Start work that never raises in a thread; return its AsyncResult. Raises OSError."""
    try:
        return get_hub().threadpool.spawn(work, *given, **named)
    except RuntimeError as error:  # the limit of processes is reached
        raise OSError(errno.EAGAIN, str(error)) from error


def computed(work: Callable[[], _Result]) -> _Result:
    """Return the result of long work, or raise its error; done in a thread, so that the loop continues.

    Python's threads take turns of milliseconds, so the heartbeat continues, too. `work` must not wait for the
    loop; callers see to it that no two of them touch the same.
    """
    errors: list[Exception] = []

    def caught() -> tuple[_Result, ...]:
        try:
            with no_collection():
                return (work(),)
        except Exception as error:  # noqa: BLE001  # raised below: gevent would print it, too
            errors.append(error)
            return ()

    found: tuple[_Result, ...] = get_hub().threadpool.apply(caught)
    for error in errors:
        raise error
    return found[0]
