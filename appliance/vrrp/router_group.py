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

from appliance.core.vrrp.conflicts import Advice
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
)
from appliance.core.vrrp.sync_group import SyncGroup, Tagged
from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.net.netlink.links import Link
from appliance.vrrp.virtual_router import VrrpInstance

_LATE_FRACTION: Final = 0.25  # of the shortest interval: from here on a wake-up is told as late
_MOMENT: Final = 0.01  # of the shortest interval: so much later an advertisement may be sent
_CRASH_PAUSE: Final = 1.0
_BUG: Final = "bug"
_LATE_LEAST: Final = 0.002  # seconds


_Given = ParamSpec("_Given")


class GroupObserver(Protocol):
    """Who is told what has happened, after it was done."""

    def entered(self, participant: VrrpInstance, entered: Entered) -> None:
        """Take a transition."""

    def split_brain(self, participant: VrrpInstance, split: SplitBrain) -> None:
        """Take another active that was heard while active."""

    def handed_over(self, participant: VrrpInstance, successor: str | None) -> None:
        """Take the end of a planned hand-over."""

    def cut_short(self, participant: VrrpInstance, why: str) -> None:
        """Take the end of a planned hand-over that nobody has answered yet, and will not be waited for."""

    def left(self, group: "RouterGroup") -> None:
        """Take the end of a stop: all of the group's routers have left."""

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
    """The participants of one sync group. Whatever goes wrong here is this group's alone."""

    def __init__(self, participants: Iterable[VrrpInstance], listener: GroupObserver) -> None:
        self.participants = {each.name: each for each in participants}
        self.sync = SyncGroup({name: each.election for name, each in self.participants.items()})
        self._listener = listener
        self._faulty: set[str] = set()
        self._left: set[str] = set()
        self._crashed_until: float | None = None
        self._deadline: float | None = None
        self._known = False
        self.changes = 0
        self.on_moved: Callable[[], None] = _nobody
        for each in self.participants.values():
            each.on_readable = self.receive
            each.on_return = self.announce_again
            each.caution.on_alarm = self.heed
            each.weigh()  # of the interfaces that it tracks the kernel has told by now
            self.sync.weigh(each.name, each.priority.value, time.monotonic())
        shortest = min(each.router.advert for each in self.participants.values())
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
        for each in self.participants.values():
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
        return not any(each.election.leaving for each in self.participants.values())

    @_guarded
    def tick(self, now: float) -> None:
        """Do what is due."""
        if self._crashed_until is not None:
            self._crashed_until = None
            for each in self.participants.values():
                each.reasons.pop(_BUG, None)
                self._reconsider(each, now)
        self._tick(now)

    @_guarded
    def receive(self, name: str) -> None:
        """Take what a member's socket has."""
        self._receive(self.participants[name])

    @_guarded
    def announce_again(self, name: str) -> None:
        """Announce a member's addresses: another router is back, whose side may have them at its own."""
        participant = self.participants[name]
        if participant.election.state is RouterState.ACTIVE and not participant.election.leaving:
            participant.announce(participant.router.announce.repeat, time.monotonic())

    @_guarded
    def heed(self, name: str) -> None:
        """Take what a member's conflicts mean before its first claim."""
        now, participant = time.monotonic(), self.participants[name]
        match participant.caution.conflicts.advice(now):
            case Advice.GO:
                return
            case Advice.WAIT:
                self.sync.hold(participant.caution.conflicts.until(now))
            case Advice.REFUSE:
                found = participant.caution.conflicts.colliding(now)
                told = ", ".join(f"{each.kind.value} of {each.peer}" for each in found)
                participant.reasons["conflict"] = f"conflict: {told}"
                self.reconsider(participant, now)

    # From the program

    @_guarded
    def start(self, now: float) -> None:
        """Take part, those that can."""
        fresh = [each for each in self.participants.values() if each.election.state is RouterState.INITIALIZE]
        for each in fresh:
            each.ask_verdicts(now)
        for each in self.participants.values():
            self.reconsider(each, now)
        self._perform(self.sync.start(now), now)
        self._watch(fresh, now)

    @_guarded
    def resume(self, now: float) -> None:
        """Go on as active, after a crash or under another router id.

        What is not known yet of what is tracked is no reason to stop.
        """
        for each in self.participants.values():
            each.forgo_verdicts()
            each.weigh()
        self._perform(self.sync.resume(now), now)
        for each in self.participants.values():
            self.reconsider(each, now)

    @_guarded
    def reconsider(self, participant: VrrpInstance, now: float) -> None:
        """Take what a participant's reasons say by now: a fault, or its end."""
        self._reconsider(participant, now)

    def _reconsider(self, participant: VrrpInstance, now: float) -> None:
        name, faulty = participant.name, bool(participant.reasons)
        if faulty and name not in self._faulty:
            self._faulty.add(name)
            self._perform(self.sync.fault(name, now), now)
        elif not faulty and name in self._faulty:
            self._faulty.discard(name)
            self._perform(self.sync.recover(name, now), now)
            self._watch(self.participants.values(), now)

    @_guarded
    def weigh(self, participant: VrrpInstance, now: float) -> None:
        """Take a participant's new results of its tracks."""
        before = participant.priority.value
        participant.weigh()
        if participant.priority.value != before:
            self._perform(self.sync.weigh(participant.name, participant.priority.value, now), now)
        self.reconsider(participant, now)

    @_guarded
    def revise(self, participant: VrrpInstance, router: VirtualRouter, now: float) -> None:
        """Take other parameters of one virtual router."""
        try:
            participant.revise(router, now)
        except OSError as error:
            participant.could_not_take(error, now)
        participant.ask_verdicts(now)
        self.look(participant, participant.link, now)
        self.weigh(participant, now)

    @_guarded
    def look(self, participant: VrrpInstance, link: Link | None, now: float) -> None:
        """Take the state of a participant's interface."""
        participant.look(link)
        if participant.terms != participant.election.terms:
            self._perform(self.sync.revise(participant.name, participant.terms, now), now)
        self.reconsider(participant, now)

    @_guarded
    def leave(self, now: float) -> None:
        """Stop, make before break; the listener is told when all have left."""
        self._perform(self.sync.leave(now), now)

    @_guarded
    def move(self, now: float) -> None:
        """Hand over on purpose."""
        self._perform(self.sync.move(now), now)

    @_guarded
    def reclaim(self, now: float) -> None:
        """Forget that it was moved away."""
        self._perform(self.sync.reclaim(now), now)

    @_guarded
    def restore(self, participant: VrrpInstance, now: float) -> None:
        """Put back addresses that somebody else has removed."""
        self._perform(
            [
                (participant.name, TakeAddresses()),
                (participant.name, AnnounceAddresses(repeat=participant.router.announce.repeat)),
            ],
            now,
        )

    def close(self) -> None:
        """Let go of all sockets."""
        for each in self.participants.values():
            each.close()

    # Inside

    def _watch(self, participants: Iterable[VrrpInstance], now: float) -> None:
        """Have those that listen before they claim ask whether somebody else has their addresses."""
        for each in participants:
            if each.election.state is RouterState.BACKUP:
                each.watch(now)

    def _tick(self, now: float) -> None:
        for each in self.participants.values():  # before what they have held back is done
            if each.verdicts.deadline is not None:
                each.judge_without(now)
                self._reconsider(each, now)
        due = self.sync.deadline
        if due is not None and due <= now:
            self._perform(self.sync.tick(now, now - due), now)
            self._tell_if_late(due, now)
        for each in self.participants.values():
            if (at := each.deadline) is not None and at <= now:
                each.tick(now)
                self.reconsider(each, now)

    def _receive(self, participant: VrrpInstance) -> None:
        now, due = time.monotonic(), self.sync.deadline
        for heard in participant.receive(now):
            effects = self.sync.hear(participant.name, heard, now)
            if effects:
                self._perform(effects, now)
        # What was heard may have moved the deadline: then the tick will not know that it was missed.
        if due is not None and due != self.sync.deadline:
            self._tell_if_late(due, now)

    def _tell_if_late(self, due: float, now: float) -> None:
        if now - due > self._late_from:
            self._listener.late(self, now - due)

    def _perform(self, effects: Iterable[Tagged], now: float) -> None:
        queue, said = deque(effects), list[Callable[[], None]]()
        while queue:
            name, effect = queue.popleft()
            participant = self.participants[name]
            try:
                self._do(participant, effect, now, said)
            except OSError as error:
                # What else was to be done assumes the addresses: the fault undoes it for the whole group.
                participant.could_not_take(error, now)
                self._faulty.add(name)
                queue = deque(self.sync.fault(name, now))
        for say in said:
            say()

    def _do(
        self, participant: VrrpInstance, effect: Effect, now: float, said: list[Callable[[], None]]
    ) -> None:
        match effect:
            case SendAdvert(priority=priority):
                participant.send(priority, now)
            case TakeAddresses():
                participant.take()
            case ReleaseAddresses():
                participant.release()
            case AnnounceAddresses(repeat=repeat):
                participant.announce(repeat, now)
            case Entered():
                participant.figures.entered(effect, wall=time.time())
                if effect.state is RouterState.ACTIVE:
                    participant.caution.claimed()
                    participant.ask_for_others(now)
                else:
                    participant.ask_no_more()
                said.append(lambda: self._listener.entered(participant, effect))
            case SplitBrain():
                participant.figures.split_brains += 1
                participant.ask_for_others(now)
                said.append(lambda: self._listener.split_brain(participant, effect))
            case HandOverEnded(successor=successor):
                said.append(lambda: self._listener.handed_over(participant, successor))
            case Left():
                said.append(lambda: self._take_leave(participant))
            case _:
                assert_never(effect)

    def _take_leave(self, participant: VrrpInstance) -> None:
        self._left.add(participant.name)
        if self._left == self.participants.keys():
            self._listener.left(self)

    def crashed(self, error: Exception) -> None:
        """Take a bug for a fault, and try again a little later: the peers can serve."""
        now = time.monotonic()
        self._crashed_until = now + _CRASH_PAUSE
        self.moved()
        for each in self.participants.values():
            each.reasons[_BUG] = f"{type(error).__name__}: {error}"
            with contextlib.suppress(Exception):  # a second bug says nothing that the first one does not
                self._reconsider(each, now)
            if each.holding.held:
                each.release()
        self._listener.crashed(self, error)

    @property
    def state(self) -> RouterState:
        """Return the state of all of them."""
        return self.sync.state


def _nobody() -> None:
    """Tell nobody: no loop has it yet."""
