"""Keeps a bug in one group of instances from ending the others, and its deadline up to date.

Every method of `RouterGroup` that changes something runs within a `Guard`: so no caller has to remember that
a deadline may be another one after a call.
"""

from types import TracebackType
from typing import Protocol


class Guarded(Protocol):
    """What a guard needs of a group."""

    def crash(self, error: Exception, now: float) -> None:
        """Treat a bug as a fault of this group."""
        ...

    def settle(self) -> None:
        """Compute the deadline after an event."""
        ...


class Guard:
    """Hands an exception to the group and ends it there; the deadline is computed in any case."""

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
