"""Virtual routers that move together, or one alone: their elections' effects, performed in order.

What is to be said is said after everything was done, so that no line of a log stands between an address and
its announcement.
"""

import contextlib
import functools
import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Concatenate, Final, ParamSpec, Protocol, assert_never

from appliance.core.vrrp.conflicts import ClaimAdvice
from appliance.core.vrrp.election import (
    AnnounceAddresses,
    Effect,
    Entered,
    HandOverEnded,
    Left,
    ReleaseAddresses,
    RouterState,
    SendAdvert,
    SplitBrain,
    TakeAddresses,
    UnexpectedEvent,
)
from appliance.core.vrrp.sync_group import MemberEffect, SyncGroup
from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.net.netlink.links import Link
from appliance.vrrp.instance.vrrp_instance import VrrpInstance

_LATE_FRACTION: Final = 0.25  # of the shortest interval: from here on a wake-up is told as late
_MOMENT: Final = 0.01  # of the shortest interval: so much later an advertisement may be sent
_CRASH_PAUSE: Final = 1.0
_BUG: Final = "bug"
_LATE_LEAST: Final = 0.002  # seconds


_Given = ParamSpec("_Given")


class GroupObserver(Protocol):
    """Who is told what has happened, after it was done."""

    def entered(self, instance: VrrpInstance, entered: Entered) -> None:
        """Take a transition."""

    def split_brain(self, instance: VrrpInstance, split: SplitBrain) -> None:
        """Take another active that was heard while active."""

    def handed_over(self, instance: VrrpInstance, successor: str | None) -> None:
        """Take the end of a planned hand-over."""

    def cut_short(self, instance: VrrpInstance, why: str) -> None:
        """Take the end of a planned hand-over that nobody has answered yet, and will not be waited for."""

    def left(self, group: "RouterGroup") -> None:
        """Take the end of a stop: all of the group's routers have left."""

    def unexpected(self, instance: VrrpInstance, unexpected: UnexpectedEvent) -> None:
        """Log an event that cannot happen in the election's state; it was not acted on."""

    def late(self, group: "RouterGroup", seconds: float) -> None:
        """Take a wake-up that came too late."""

    def crashed(self, group: "RouterGroup", error: Exception) -> None:
        """Take a bug that one group met with."""


_Method = Callable[Concatenate["RouterGroup", _Given], None]


def _guarded(method: _Method[_Given]) -> _Method[_Given]:
    """Have a bug in one group harm this group only, and its deadline looked for again."""

    @functools.wraps(method)
    def guarded(group: "RouterGroup", /, *given: _Given.args, **named: _Given.kwargs) -> None:
        try:
            method(group, *given, **named)
        except Exception as error:  # noqa: BLE001  # whatever it is, the other groups go on; it is logged
            group.crashed(error)
        finally:
            group.moved()

    return guarded


class RouterGroup:
    """The instances of one sync group. Whatever goes wrong here is this group's alone."""

    def __init__(self, instances: Iterable[VrrpInstance], listener: GroupObserver) -> None:
        self.instances = {each.name: each for each in instances}
        self.sync = SyncGroup({name: each.election for name, each in self.instances.items()})
        self._listener = listener
        self._faulty: set[str] = set()
        self._left: set[str] = set()
        self._crashed_until: float | None = None
        self._deadline: float | None = None
        self._known = False
        self.changes = 0
        self.on_moved: Callable[[], None] = _nobody
        for each in self.instances.values():
            each.on_readable = self.receive
            each.on_return = self.announce_again
            each.conflict_watch.on_alarm = self.apply_conflicts
            each.weigh()  # of the interfaces that it tracks the kernel has told by now
            self.sync.set_priority(each.name, each.priority.value, time.monotonic())
        shortest = min(each.router.advert for each in self.instances.values())
        self._moment = _MOMENT * shortest
        self._late_from = max(_LATE_LEAST, _LATE_FRACTION * shortest)

    # From the loop

    @property
    def deadline(self) -> float | None:
        """Return when something is due; the loop asks for it all the time, and most have done nothing."""
        if not self._known:
            self._deadline, self._known = self._next(), True
        return self._deadline

    def moved(self) -> None:
        """Have the deadline looked for again: something was done to a member."""
        self._known = False
        self.changes += 1
        self.on_moved()

    def _next(self) -> float | None:
        if self._crashed_until is not None:
            return self._crashed_until
        at = self._together(self.sync.deadline)
        for each in self.instances.values():
            other = each.deadline
            if other is not None and (at is None or other < at):
                at = other
        return at

    def _together(self, at: float | None) -> float | None:
        """Return when an advertisement is sent that is due at `at`: with all that are due a moment later.

        Hundreds of virtual routers need not wake the processor hundreds of times. A claim is never put off:
        skew times differ by less (RFC 9568 section 6.1).
        """
        if at is None or self.sync.state is not RouterState.ACTIVE:
            return at
        return math.ceil(at / self._moment) * self._moment

    def prompt(self) -> bool:
        """Say whether what is due is a sign of life for the peers: such an active's work is short."""
        if self._crashed_until is not None or self.sync.state is not RouterState.ACTIVE:
            return False
        return not any(each.election.handing_over for each in self.instances.values())

    @_guarded
    def tick(self, now: float) -> None:
        """Do what is due."""
        if self._crashed_until is not None:
            self._crashed_until = None
            for each in self.instances.values():
                each.reasons.pop(_BUG, None)
                self._reconsider(each, now)
        self._tick(now)

    @_guarded
    def receive(self, name: str) -> None:
        """Take what a member's socket has."""
        self._receive(self.instances[name])

    @_guarded
    def announce_again(self, name: str) -> None:
        """Announce a member's addresses: another router is back, whose side may have them at its own."""
        instance = self.instances[name]
        if instance.election.state is RouterState.ACTIVE and not instance.election.handing_over:
            instance.announce(instance.router.announce.repeat, time.monotonic())

    @_guarded
    def apply_conflicts(self, name: str) -> None:
        """Take what a member's conflicts mean before its first claim."""
        now, instance = time.monotonic(), self.instances[name]
        match instance.conflict_watch.conflicts.advice(now):
            case ClaimAdvice.GO:
                return
            case ClaimAdvice.WAIT:
                self.sync.hold_claim(instance.conflict_watch.conflicts.claim_held_until(now))
            case ClaimAdvice.REFUSE:
                found = instance.conflict_watch.conflicts.colliding(now)
                told = ", ".join(f"{each.kind.value} of {each.peer}" for each in found)
                instance.reasons["conflict"] = f"conflict: {told}"
                self.reconsider(instance, now)

    # From the program

    @_guarded
    def start(self, now: float) -> None:
        """Take part, those that can."""
        fresh = [each for each in self.instances.values() if each.election.state is RouterState.INITIALIZE]
        for each in fresh:
            each.ask_verdicts(now)
        for each in self.instances.values():
            self.reconsider(each, now)
        self._perform(self.sync.start(now), now)
        self._watch(fresh, now)

    @_guarded
    def resume(self, now: float) -> None:
        """Go on as active, after a crash or under another router id.

        What is not known yet of what is tracked is no reason to stop.
        """
        for each in self.instances.values():
            each.forgo_verdicts()
            each.weigh()
        self._perform(self.sync.resume(now), now)
        for each in self.instances.values():
            self.reconsider(each, now)

    @_guarded
    def reconsider(self, instance: VrrpInstance, now: float) -> None:
        """Take what a instance's reasons say by now: a fault, or its end."""
        self._reconsider(instance, now)

    def _reconsider(self, instance: VrrpInstance, now: float) -> None:
        name, faulty = instance.name, bool(instance.reasons)
        if faulty and name not in self._faulty:
            self._faulty.add(name)
            self._perform(self.sync.fault(name, now), now)
        elif not faulty and name in self._faulty:
            self._faulty.discard(name)
            self._perform(self.sync.recover(name, now), now)
            self._watch(self.instances.values(), now)

    @_guarded
    def weigh(self, instance: VrrpInstance, now: float) -> None:
        """Take a instance's new results of its tracks."""
        before = instance.priority.value
        instance.weigh()
        if instance.priority.value != before:
            self._perform(self.sync.set_priority(instance.name, instance.priority.value, now), now)
        self.reconsider(instance, now)

    @_guarded
    def revise(self, instance: VrrpInstance, router: VirtualRouter, now: float) -> None:
        """Take other parameters of one virtual router."""
        try:
            instance.revise(router, now)
        except OSError as error:
            instance.could_not_take(error, now)
        instance.ask_verdicts(now)
        self.look(instance, instance.link, now)
        self.weigh(instance, now)

    @_guarded
    def look(self, instance: VrrpInstance, link: Link | None, now: float) -> None:
        """Take the state of a instance's interface."""
        instance.look(link)
        if instance.terms != instance.election.settings:
            self._perform(self.sync.change_settings(instance.name, instance.terms, now), now)
        self.reconsider(instance, now)

    @_guarded
    def leave(self, now: float) -> None:
        """Stop, make before break; the listener is told when all have left."""
        self._perform(self.sync.stop(now), now)

    @_guarded
    def move(self, now: float) -> None:
        """Hand over on purpose."""
        self._perform(self.sync.move(now), now)

    @_guarded
    def reclaim(self, now: float) -> None:
        """Forget that it was moved away."""
        self._perform(self.sync.reclaim(now), now)

    @_guarded
    def restore(self, instance: VrrpInstance, now: float) -> None:
        """Put back addresses that somebody else has removed."""
        self._perform(
            [
                (instance.name, TakeAddresses()),
                (instance.name, AnnounceAddresses(repeat=instance.router.announce.repeat)),
            ],
            now,
        )

    def close(self) -> None:
        """Let go of all sockets."""
        for each in self.instances.values():
            each.close()

    # Inside

    def _watch(self, instances: Iterable[VrrpInstance], now: float) -> None:
        """Have those that listen before they claim ask whether somebody else has their addresses."""
        for each in instances:
            if each.election.state is RouterState.BACKUP:
                each.watch(now)

    def _tick(self, now: float) -> None:
        for each in self.instances.values():  # before what they have held back is done
            if each.verdicts.deadline is not None:
                each.judge_without(now)
                self._reconsider(each, now)
        due = self.sync.deadline
        if due is not None and due <= now:
            self._perform(self.sync.tick(now, now - due), now)
            self._tell_if_late(due, now)
        for each in self.instances.values():
            if (at := each.deadline) is not None and at <= now:
                each.tick(now)
                self.reconsider(each, now)

    def _receive(self, instance: VrrpInstance) -> None:
        now, due = time.monotonic(), self.sync.deadline
        for heard in instance.receive(now):
            effects = self.sync.hear(instance.name, heard, now)
            if effects:
                self._perform(effects, now)
        # What was heard may have moved the deadline: then the tick will not know that it was missed.
        if due is not None and due != self.sync.deadline:
            self._tell_if_late(due, now)

    def _tell_if_late(self, due: float, now: float) -> None:
        if now - due > self._late_from:
            self._listener.late(self, now - due)

    def _perform(self, effects: Iterable[MemberEffect], now: float) -> None:
        queue, said = deque(effects), list[Callable[[], None]]()
        while queue:
            name, effect = queue.popleft()
            instance = self.instances[name]
            try:
                self._do(instance, effect, now, said)
            except OSError as error:
                # What else was to be done assumes the addresses: the fault undoes it for the whole group.
                instance.could_not_take(error, now)
                self._faulty.add(name)
                queue = deque(self.sync.fault(name, now))
        for say in said:
            say()

    def _do(self, instance: VrrpInstance, effect: Effect, now: float, said: list[Callable[[], None]]) -> None:
        match effect:
            case SendAdvert(priority=priority):
                instance.send(priority, now)
            case TakeAddresses():
                instance.take()
            case ReleaseAddresses():
                instance.release()
            case AnnounceAddresses(repeat=repeat):
                instance.announce(repeat, now)
            case Entered():
                self._note_state(instance, effect, now)
                said.append(lambda: self._listener.entered(instance, effect))
            case SplitBrain():
                instance.counters.split_brains += 1
                instance.ask_for_others(now)
                said.append(lambda: self._listener.split_brain(instance, effect))
            case HandOverEnded(successor=successor):
                said.append(lambda: self._listener.handed_over(instance, successor))
            case Left():
                said.append(lambda: self._take_leave(instance))
            case UnexpectedEvent():
                said.append(lambda: self._listener.unexpected(instance, effect))
            case _:
                assert_never(effect)

    def _note_state(self, instance: VrrpInstance, entered: Entered, now: float) -> None:
        instance.counters.entered(entered, wall=time.time())
        if entered.state is RouterState.ACTIVE:
            instance.conflict_watch.claimed()
            instance.ask_for_others(now)
        else:
            instance.ask_no_more()

    def _take_leave(self, instance: VrrpInstance) -> None:
        self._left.add(instance.name)
        if self._left == self.instances.keys():
            self._listener.left(self)

    def crashed(self, error: Exception) -> None:
        """Take a bug for a fault, and try again a little later: the peers can serve."""
        now = time.monotonic()
        self._crashed_until = now + _CRASH_PAUSE
        self.moved()
        for each in self.instances.values():
            each.reasons[_BUG] = f"{type(error).__name__}: {error}"
            with contextlib.suppress(Exception):  # a second bug says nothing that the first one does not
                self._reconsider(each, now)
            if each.holder.held:
                each.release()
        self._listener.crashed(self, error)

    @property
    def state(self) -> RouterState:
        """Return the state of all of them."""
        return self.sync.state


def _nobody() -> None:
    """Tell nobody: no loop has it yet."""
