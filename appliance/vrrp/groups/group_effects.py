"""Performs one effect of an election on its instance, then reports it to the observer."""

import time
from typing import assert_never

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
from appliance.vrrp.groups.group_observer import GroupObserver
from appliance.vrrp.instance.vrrp_instance import VrrpInstance


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


def tell(instance: VrrpInstance, effect: Effect, observer: GroupObserver) -> None:
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
