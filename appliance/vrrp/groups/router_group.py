"""The VRRP instances of one sync group, or a single one: takes events, performs their elections' effects.

Observers are called after all effects, so writing a log line never delays an announcement of addresses.
"""

import contextlib
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from appliance.core.vrrp.conflicts import ClaimAdvice
from appliance.core.vrrp.election import (
    AnnounceAddresses,
    Effect,
    Left,
    Resumption,
    RouterState,
    TakeAddresses,
)
from appliance.core.vrrp.sync_group import MemberEffect, SyncGroup
from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.net.netlink.links import Link
from appliance.vrrp.groups.election_effects import GroupObserver, Guard, perform, report
from appliance.vrrp.instance.faults import FaultReason
from appliance.vrrp.instance.vrrp_instance import VrrpInstance

_LATE_FRACTION: Final = 0.25  # of the shortest interval: a later wake-up is reported
_LATE_LEAST: Final = 0.002  # seconds: a smaller delay is never late
_TOGETHER_FRACTION: Final = 0.01  # of the shortest interval: the longest delay of an advert
_CRASH_PAUSE: Final = 1.0  # seconds from a bug to the next try


class RouterGroup:
    """The instances of one sync group, by name. `deadline` is when to `tick` next, None for never.

    `changes` counts the events, so that callers can cache what they compute from the group. The program sets
    `on_change`, which is called whenever the deadline may have changed. `on_left` is called when all
    instances have stopped.
    """

    def __init__(
        self,
        instances: Iterable[VrrpInstance],
        observer: GroupObserver,
        *,
        now: float,
        on_left: Callable[["RouterGroup"], None],
    ) -> None:
        self.instances = {each.name: each for each in instances}
        self.sync = SyncGroup({name: each.election for name, each in self.instances.items()})
        self.deadline: float | None = None
        self.changes = 0
        self.on_change: Callable[[], None] = _nobody
        self._observer = observer
        self._on_left = on_left
        self._faulty: set[str] = set()
        self._left: set[str] = set()
        self._crashed_until: float | None = None
        for each in self.instances.values():
            each.on_readable = self.receive
            each.on_return = self.announce_again
            each.conflict_watch.on_found = self.apply_conflicts
            # Netlink has already reported the tracked interfaces.
            each.tracked.update()
            self.sync.set_priority(each.name, each.priority.value, now)
        shortest = min(each.router.advert for each in self.instances.values())
        self._grid = _TOGETHER_FRACTION * shortest
        self._late_from = max(_LATE_LEAST, _LATE_FRACTION * shortest)
        self.deadline = self._next_deadline()

    @property
    def state(self) -> RouterState:
        """Return the state of all instances."""
        return self.sync.state

    # From the loop

    def prompt(self) -> bool:
        """Return whether the loop must wake this group before others: the adverts of an active are due."""
        if self._crashed_until is not None or self.sync.state is not RouterState.ACTIVE:
            return False
        return not any(each.election.handing_over for each in self.instances.values())

    def tick(self, now: float) -> None:
        """Do what is due."""
        with Guard(self, now):
            if self._crashed_until is not None:
                self._crashed_until = None
                for each in self.instances.values():
                    each.faults.remove(FaultReason.BUG)
                    self._apply_faults(each, now)
            self._tick(now)

    def receive(self, name: str, now: float) -> None:
        """Read the packets at the socket of the instance `name`."""
        with Guard(self, now):
            self._receive(self.instances[name], now)

    def announce_again(self, name: str, now: float) -> None:
        """Announce the addresses of the instance `name`: a peer is back that may also have announced them."""
        with Guard(self, now):
            instance = self.instances[name]
            if instance.election.state is RouterState.ACTIVE and not instance.election.handing_over:
                instance.announcer.begin(instance.router.announce.repeat, now)

    def apply_conflicts(self, name: str, now: float) -> None:
        """Do what the operator's `on_conflict` demands for the present conflicts of the instance `name`."""
        with Guard(self, now):
            instance = self.instances[name]
            conflicts = instance.conflict_watch.conflicts
            match conflicts.advice(now):
                case ClaimAdvice.GO:
                    return
                case ClaimAdvice.WAIT:
                    self.sync.hold_claim(conflicts.claim_held_until(now))
                case ClaimAdvice.REFUSE:
                    names = ", ".join(
                        f"{each.kind.value} of {each.peer}" for each in conflicts.colliding(now)
                    )
                    instance.faults.add(FaultReason.CONFLICT, f"conflict: {names}")
                    self._apply_faults(instance, now)

    # From the program

    def start(self, now: float) -> None:
        """Take part, with the instances that have no fault."""
        with Guard(self, now):
            new = [each for each in self.instances.values() if each.election.state is RouterState.INITIALIZE]
            for each in new:
                each.tracked.wait(now)
            for each in self.instances.values():
                self._apply_faults(each, now)
            self._perform(self.sync.start(now), now)
            self._probe(new, now)

    def resume(self, now: float, how: Mapping[str, Resumption] = MappingProxyType({})) -> None:
        """Continue as active, after an earlier run of the program or with another router id.

        `how` maps the names of instances that an earlier run held; other instances are reported as new. A
        track without a result yet is no reason to stop.
        """
        with Guard(self, now):
            for each in self.instances.values():
                each.tracked.stop_waiting()
                each.tracked.update()
            self._perform(self.sync.resume(now, how), now)
            for each in self.instances.values():
                self._apply_faults(each, now)

    def update_priority(self, instance: VrrpInstance, now: float) -> None:
        """Use the new results of an instance's tracks."""
        with Guard(self, now):
            self._update_priority(instance, now)

    def update_link(self, instance: VrrpInstance, link: Link | None, now: float) -> None:
        """Use the new state of an instance's interface, None while it does not exist."""
        with Guard(self, now):
            self._update_link(instance, link, now)

    def reconfigure(self, instance: VrrpInstance, router: VirtualRouter, now: float) -> None:
        """Use other parameters of one virtual router."""
        with Guard(self, now):
            try:
                instance.reconfigure(router, now)
            except OSError as error:
                instance.could_not_take(error, now)
            instance.tracked.wait(now)
            self._update_link(instance, instance.port.link, now)
            self._update_priority(instance, now)

    def restore(self, instance: VrrpInstance, count: int, now: float) -> bool:
        """Restore an active's addresses after others removed `count`; return False if that must wait."""
        with Guard(self, now):
            if instance.may_restore(count, now):
                effects = (TakeAddresses(), AnnounceAddresses(repeat=instance.router.announce.repeat))
                self._perform([(instance.name, each) for each in effects], now)
                return True
        return False

    def inform(self, instance: VrrpInstance, by: str, now: float) -> None:
        """Let an instance preempt, once all that it waits for know what connections there are."""
        with Guard(self, now):
            instance.election.inform(by)

    def stop(self, now: float) -> None:
        """Stop, with a hand-over if a peer can take over; `on_left` is called at the end."""
        with Guard(self, now):
            self._perform(self.sync.stop(now), now)

    def move(self, now: float) -> None:
        """Hand over to a peer, as the operator requested."""
        with Guard(self, now):
            self._perform(self.sync.move(now), now)

    def reclaim(self, now: float) -> None:
        """Let priorities decide again after `move`."""
        with Guard(self, now):
            self._perform(self.sync.reclaim(now), now)

    def fail(self, error: Exception, now: float) -> None:
        """Continue after a bug in opening an instance."""
        with Guard(self, now):
            self.crash(error, now)

    def close(self) -> None:
        """Close all sockets."""
        for each in self.instances.values():
            each.close()

    # From the guard

    def settle(self) -> None:
        """Compute the deadline after an event."""
        self.deadline = self._next_deadline()
        self.changes += 1
        self.on_change()

    def crash(self, error: Exception, now: float) -> None:
        """Treat a bug as a fault, so that the peers serve, and try again a little later."""
        self._crashed_until = now + _CRASH_PAUSE
        for each in self.instances.values():
            each.faults.add(FaultReason.BUG, f"{type(error).__name__}: {error}")
            with contextlib.suppress(Exception):  # most likely the same bug, which is logged below
                self._apply_faults(each, now)
            if each.holder.held:
                each.release()
        self._observer.crashed(self.instances, error)

    # Inside

    def _next_deadline(self) -> float | None:
        if self._crashed_until is not None:
            return self._crashed_until
        at = self._together(self.sync.deadline)
        for each in self.instances.values():
            other = each.deadline
            if other is not None and (at is None or other < at):
                at = other
        return at

    def _together(self, at: float | None) -> float | None:
        """Return when to send an advert that is due at `at`: a moment later, with others due by then.

        This way hundreds of virtual routers do not wake the processor hundreds of times a second. A claim is
        never delayed: skew times differ by as little (RFC 9568 section 6.1).
        """
        if at is None or self.sync.state is not RouterState.ACTIVE:
            return at
        return math.ceil(at / self._grid) * self._grid

    def _tick(self, now: float) -> None:
        # Before the elections: an overdue wait holds their claims back.
        for each in self.instances.values():
            if each.tracked.deadline is not None:
                each.tracked.end_overdue_wait(now)
                self._apply_faults(each, now)
        due = self.sync.deadline
        if due is not None and due <= now:
            self._perform(self.sync.tick(now, now - due), now)
            self._report_lateness(due, now)
        for each in self.instances.values():
            if (at := each.deadline) is not None and at <= now:
                each.tick(now)
                self._apply_faults(each, now)

    def _receive(self, instance: VrrpInstance, now: float) -> None:
        due = self.sync.deadline
        for heard in instance.receive(now):
            effects = self.sync.receive(instance.name, heard, now)
            if effects:
                self._perform(effects, now)
        # An advert may have moved the deadline: then no tick will notice that it was missed.
        if due is not None and due != self.sync.deadline:
            self._report_lateness(due, now)

    def _update_link(self, instance: VrrpInstance, link: Link | None, now: float) -> None:
        instance.update_link(link, now)
        if instance.settings != instance.election.settings:
            self._perform(self.sync.change_settings(instance.name, instance.settings, now), now)
        self._apply_faults(instance, now)

    def _update_priority(self, instance: VrrpInstance, now: float) -> None:
        before = instance.priority.value
        instance.tracked.update()
        if instance.priority.value != before:
            self._perform(self.sync.set_priority(instance.name, instance.priority.value, now), now)
        self._apply_faults(instance, now)

    def _apply_faults(self, instance: VrrpInstance, now: float) -> None:
        """Report to the sync group that an instance has become faulty, or has recovered."""
        name, faulty = instance.name, bool(instance.faults)
        if faulty and name not in self._faulty:
            self._faulty.add(name)
            self._perform(self.sync.fault(name, now), now)
        elif not faulty and name in self._faulty:
            self._faulty.discard(name)
            self._perform(self.sync.recover(name, now), now)
            self._probe(self.instances.values(), now)

    def _probe(self, instances: Iterable[VrrpInstance], now: float) -> None:
        """Make the instances that listen before their first claim probe for their addresses."""
        for each in instances:
            if each.election.state is RouterState.BACKUP:
                each.probe(now)

    def _report_lateness(self, due: float, now: float) -> None:
        if now - due > self._late_from:
            self._observer.late(self.instances, now - due, now)

    def _perform(self, effects: Iterable[MemberEffect], now: float) -> None:
        queue, performed = deque(effects), list[tuple[VrrpInstance, Effect]]()
        while queue:
            name, effect = queue.popleft()
            instance = self.instances[name]
            try:
                perform(instance, effect, now)
            except OSError as error:
                # The effects that follow assume the addresses: the fault undoes them for the whole group.
                instance.could_not_take(error, now)
                self._faulty.add(name)
                queue = deque(self.sync.fault(name, now))
            else:
                performed.append((instance, effect))
        for instance, effect in performed:
            report(instance, effect, self._observer)
            if isinstance(effect, Left):
                self._count_left(instance)

    def _count_left(self, instance: VrrpInstance) -> None:
        self._left.add(instance.name)
        if self._left == self.instances.keys():
            self._on_left(self)


def _nobody() -> None:
    """Do nothing: the group is not in a loop yet."""
