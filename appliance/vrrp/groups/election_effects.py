"""Performs one effect of an election on its instance, then reports it to the observer."""

import time
from collections.abc import Iterable
from types import TracebackType
from typing import Protocol, assert_never

from appliance.core.vrrp.election import (
    AnnounceAddresses,
    Effect,
    Entered,
    HandOverEnded,
    KeepAnnounced,
    Left,
    ReleaseAddresses,
    RouterState,
    SendAdvert,
    SplitBrain,
    TakeAddresses,
    UnexpectedEvent,
)
from appliance.vrrp.instance.vrrp_instance import VrrpInstance


class Guarded(Protocol):
    """The methods of a group that a guard calls."""

    def crash(self, error: Exception, now: float) -> None:
        """Treat a bug as a fault of this group."""
        ...

    def settle(self) -> None:
        """Compute the deadline after an event."""
        ...


class Guard:
    """Passes an exception to the group and suppresses it; computes the deadline in any case.

    Every method of `RouterGroup` that changes something runs within a `Guard`, so no caller must remember
    that a call may change the deadline.
    """

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


class GroupObserver(Protocol):
    """The observer that `RouterGroup` calls; `RouterReports` in the program."""

    def entered(self, instance: VrrpInstance, entered: Entered) -> None:
        """Report that an instance has changed its state."""

    def split_brain(self, instance: VrrpInstance, split: SplitBrain) -> None:
        """Report another active router, noticed while the instance was active."""

    def handed_over(self, instance: VrrpInstance, successor: str | None) -> None:
        """Report the end of a planned hand-over, None if no node took over."""

    def cut_short(self, instance: VrrpInstance, why: str) -> None:
        """Report that a planned hand-over ends early because the instance is stopped or replaced."""

    def unexpected(self, instance: VrrpInstance, unexpected: UnexpectedEvent) -> None:
        """Report an event that cannot happen in the election's state, which the election ignored."""

    def late(self, names: Iterable[str], seconds: float, now: float) -> None:
        """Report that a group was woken too late, and by how many seconds; `names` are its instances."""

    def crashed(self, names: Iterable[str], error: Exception) -> None:
        """Report a bug in the group of these instances."""


def perform(instance: VrrpInstance, effect: Effect, now: float) -> None:
    """Perform an effect; raises OSError when the addresses cannot be added."""
    match effect:
        case SendAdvert(priority=priority):
            instance.send(priority, now)
        case TakeAddresses():
            instance.holder.take(now)
        case ReleaseAddresses():
            instance.release()
        case AnnounceAddresses(repeat=repeat):
            instance.announcer.begin(repeat, now)
        case KeepAnnounced():
            instance.announcer.keep(now)
        case Entered():
            instance.counters.entered(effect, wall=time.time())
            if effect.state is RouterState.ACTIVE:
                instance.conflict_watch.claimed()
                instance.ask_for_others(now)
            else:
                instance.stop_asking()
        case SplitBrain():
            instance.counters.split_brains += 1
            instance.ask_for_others(now)
        case HandOverEnded() | Left() | UnexpectedEvent():
            pass  # only reported
        case _:
            assert_never(effect)


def report(instance: VrrpInstance, effect: Effect, observer: GroupObserver) -> None:
    """Report a performed effect to the observer, if operators need to know it."""
    match effect:
        case Entered():
            observer.entered(instance, effect)
        case SplitBrain():
            observer.split_brain(instance, effect)
        case HandOverEnded(successor=successor):
            observer.handed_over(instance, successor)
        case UnexpectedEvent():
            observer.unexpected(instance, effect)
