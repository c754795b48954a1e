"""How an active leaves: it says so, and holds the addresses until a successor is heard or the time is up.

Make before break, which VRRP does not have by itself: RFC 9568 section 6.4.3 (Shutdown) sends priority 0 and
drops the addresses at once, and nobody has them for the successor's skew time.
"""

from enum import Enum
from typing import Final

LINGER: Final = 0.03
"""Seconds that the addresses stay after the successor was heard: keepalived advertises before it adds."""


class SuccessorsHeard(Enum):
    """Whether all members of a sync group have their successors."""

    PARTIAL = "partial"
    COMPLETE = "complete"


class HandOver:
    """One hand_over. Priority 0 is repeated only once: each one starts the successor's skew time anew."""

    __slots__ = ("_end", "_release", "_repeat", "successor")

    def __init__(self, *, now: float, timeout: float) -> None:
        self.successor: str | None = None
        self._repeat: float | None = now + timeout / 2
        self._end = now + timeout
        self._release: float | None = None

    @property
    def may_release(self) -> bool:
        """Whether the addresses may go because a successor has them."""
        return self._release is not None

    @property
    def deadline(self) -> float:
        """When something is to be done next."""
        if self._release is not None:
            return self._release
        return self._end if self._repeat is None else self._repeat

    def successor_heard(self, successor: str, *, now: float) -> None:
        """Note that a successor was heard; its further advertisements change nothing."""
        if self.successor is None:
            self.successor = successor
            self._repeat = None
            self._release = now + LINGER

    def successor_left(self) -> None:
        """Note that the successor leaves as well: wait for another one."""
        self.successor = None
        self._release = None

    def follow_group(self, successors: SuccessorsHeard, *, now: float) -> None:
        """Hold on while the rest of the sync group has no successor; go on when all have one."""
        if successors is SuccessorsHeard.PARTIAL:
            self._release = None
        elif self._release is None:
            self._release = now + LINGER

    def repeats(self, now: float) -> bool:
        """Whether priority 0 is to be said again, once, and not yet the end."""
        if self.may_release or self._repeat is None or now >= self._end:
            return False
        self._repeat = None
        return True
