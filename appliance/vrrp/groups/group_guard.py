"""Keeps a bug in one group of instances from ending the others, and the group's deadline up to date.

Every method of `RouterGroup` that changes something runs within a `Guard`, so no caller must remember that a
call may change the deadline.
"""

from types import TracebackType
from typing import Protocol


class Guarded(Protocol):
    """The methods of a group that a guard calls."""

    def crash(self, error: Exception, now: float) -> None:
        """Treat a bug as a fault of this group."""
        ...

    def settle(self) -> None:
        """Compute the deadline after an event."""
        ...


class Guard:
    """Passes an exception to the group and suppresses it; computes the deadline in any case."""

    __slots__ = ("_group", "_now")

    def __init__(self, group: Guarded, now: float) -> None:
        self._group = group
        self._now = now

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> bool:
        try:
            if isinstance(error, Exception):
                self._group.crash(error, self._now)
        finally:
            self._group.settle()
        return isinstance(error, Exception)
