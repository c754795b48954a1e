"""All VRRP instances of the program in their groups, and how a new configuration changes them.

An unchanged router keeps its instance: its sockets, its state and its addresses.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from appliance.core.vrrp.election import Resumption, RouterState
from appliance.core.vrrp.reload_plan import Added, Removed, Replaced, Revised, changes
from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.vrrp.groups.election_effects import GroupObserver
from appliance.vrrp.groups.opening import Opening, OpeningOutcome, OpeningPhase, OpenInstance
from appliance.vrrp.groups.router_group import RouterGroup
from appliance.vrrp.instance.shared_by_instances import RouterEnvironment
from appliance.vrrp.instance.vrrp_instance import VrrpInstance

_KEEP_UP: Final = 0.001  # seconds of a reload after which due adverts are sent


class RouterGroups:
    """The groups; `leaving` are those that stop, by a reload or for good; each calls `on_left`."""

    def __init__(
        self,
        environment: RouterEnvironment,
        observer: GroupObserver,
        open_instance: OpenInstance,
        *,
        on_left: Callable[[], None],
    ) -> None:
        self.leaving: list[RouterGroup] = []
        self._environment = environment
        self._observer = observer
        self._open_instance = open_instance
        self._on_left = on_left
        self._groups: list[RouterGroup] = []
        self._instances: dict[str, VrrpInstance] = {}
        self._opening = Opening(
            open_instance=open_instance, begin=lambda instances, now: self._begin(instances, {}, now)
        )
        self._kept_up_at = float("-inf")
        environment.loop.add(self._opening)

    def __iter__(self) -> Iterator[RouterGroup]:
        return iter(tuple(self._groups))

    @property
    def instances(self) -> tuple[VrrpInstance, ...]:
        """Return the configured instances, in the order of the configuration."""
        return tuple(self._instances.values())

    def find(self, name: str) -> tuple[RouterGroup, VrrpInstance] | None:
        """Return the instance of that name with its group."""
        for group in self._groups:
            if name in group.instances:
                return group, group.instances[name]
        return None

    def begin(
        self,
        routers: Iterable[VirtualRouter],
        *,
        resume: Callable[[tuple[VrrpInstance, ...]], Mapping[str, Resumption]],
    ) -> None:
        """Open the first configuration, before the loop runs.

        `resume` is called when all are open. It returns, by name, how instances continue as active that were
        active in an earlier run.
        """
        for router in routers:
            self._instances[router.name] = self._opened(router, time.monotonic())
        self._regroup(resume(self.instances), time.monotonic())

    def apply(
        self, routers: Iterable[VirtualRouter], now: float, *, then: Callable[[OpeningOutcome], None]
    ) -> None:
        """Change to these routers; `then` is called when the new ones take part, or cannot."""
        if self._opening.phase is OpeningPhase.STOPPED:
            then(OpeningOutcome.GIVEN_UP)
            return
        self._opening.finish(now, between=self._keep_up)
        routers = tuple(routers)
        resumed, with_surplus = self._change(routers, now)
        order = {each.name: place for place, each in enumerate(routers)}
        self._instances = dict(sorted(self._instances.items(), key=lambda item: order[item[0]]))
        self._regroup(resumed, now)
        for instance in with_surplus:
            instance.holder.remove_surplus()
        self._opening.start(now, then=then)

    def remove(self, group: RouterGroup) -> None:
        """Forget a group that has left."""
        self._environment.loop.remove(group)
        group.close()
        self.leaving = [each for each in self.leaving if each is not group]
        self._groups = [each for each in self._groups if each is not group]
        self._on_left()

    def stop(self, now: float) -> None:
        """Make all groups leave; `on_left` is called for each that has left."""
        self._opening.stop()
        leaving, self._groups = self._groups, []
        self._instances = {}
        self.leaving += leaving
        for group in leaving:
            for each in group.instances.values():
                self._cut_hand_over_short(each, "vrrp stops")
            group.stop(now)

    def close(self) -> None:
        """Remove the addresses still held, also those of groups that leave, and close all sockets."""
        for each in tuple(self._environment.holders):
            each.release()
        for group in (*self._groups, *self.leaving):
            group.close()

    # A reload

    def _change(
        self, routers: Iterable[VirtualRouter], now: float
    ) -> tuple[Mapping[str, Resumption], tuple[VrrpInstance, ...]]:
        """Add, remove, reconfigure and replace instances.

        Return, by name, how instances continue that are active in place of a replaced one, and the instances
        whose surplus addresses must be removed at the end.
        """
        resumed = dict[str, Resumption]()
        reconfigured, replaced = list[VrrpInstance](), list[VrrpInstance]()
        known = dict(self._instances)  # by their old names, which other instances may have by now
        for change in changes((each.router for each in self.instances), routers):
            match change:
                case Removed(router=router):
                    self._remove_instance(known[router.name], now, why="the virtual IP was removed")
                case Replaced(before=before, after=after, keeps=keeps):
                    old = known[before.name]
                    if keeps and old.election.state is RouterState.ACTIVE:
                        self._replace(old, after, now)
                        resumed[after.name] = Resumption.AFTER_CRASH  # all others see its router id as new
                        replaced.append(old)
                    else:
                        self._remove_instance(old, now, why="the virtual IP was replaced by another one")
                    self._instances[after.name] = new = self._opened(after, now)
                    new.election.yielded = old.election.yielded
                case Revised(after=after):
                    self._reconfigure(after, now)
                    reconfigured.append(self._instances[after.name])
                case Added(router=router):
                    self._instances[router.name] = instance = VrrpInstance(router, self._environment)
                    self._opening.add(instance)
            self._keep_up()
        return resumed, (*reconfigured, *replaced)

    def _opened(self, router: VirtualRouter, now: float) -> VrrpInstance:
        instance = VrrpInstance(router, self._environment)
        self._open_instance(instance, now)
        return instance

    def _reconfigure(self, router: VirtualRouter, now: float) -> None:
        found = self.find(router.name)
        if found is not None:
            group, instance = found
            group.reconfigure(instance, router, now)

    def _cut_hand_over_short(self, instance: VrrpInstance, why: str) -> None:
        """Answer a planned hand-over that has no successor yet."""
        if instance.election.handing_over and not instance.election.has_successor:
            self._observer.cut_short(instance, why)

    def _remove_instance(self, instance: VrrpInstance, now: float, *, why: str) -> None:
        """Have an instance leave alone; its sync group continues without it."""
        self._detach(instance, now)
        self._cut_hand_over_short(instance, why)
        group = self._new_group([instance], now)
        group.on_change = self._environment.loop.add_one_of_many(group)
        self.leaving.append(group)
        group.stop(now)

    def _replace(self, instance: VrrpInstance, successor: VirtualRouter, now: float) -> None:
        """End an instance without an advert, and leave its addresses to the router that replaces it here."""
        self._detach(instance, now)
        instance.leave_to_successor(successor.addresses)
        if instance.election.handing_over:
            now_is = f"{successor.name} with router id {successor.router_id}"
            self._observer.cut_short(instance, f"the virtual IP is {now_is} now, and stays here")
            self._observer.handed_over(instance, None)  # this ends a planned hand-over

    def _detach(self, instance: VrrpInstance, now: float) -> None:
        """Remove an instance from its group, in its present state."""
        if self._instances.get(instance.name) is instance:
            del self._instances[instance.name]
        for group in self._groups:
            if group.instances.get(instance.name) is instance:
                self._drop(group)
                others = [each for each in group.instances.values() if each is not instance]
                if others:
                    self._begin(others, {}, now)
                break

    # Groups

    def _regroup(self, resumed: Mapping[str, Resumption], now: float) -> None:
        """Put instances of one sync group into one group; groups that are already right stay as they are."""
        wanted: dict[tuple[str, str], list[VrrpInstance]] = {}
        for each in self._instances.values():
            key = ("group", each.router.sync_group) if each.router.sync_group else ("router", each.name)
            wanted.setdefault(key, []).append(each)
        kept = [group for group in self._groups if list(group.instances.values()) in wanted.values()]
        for group in self._groups:
            if group not in kept:
                self._drop(group)
        members = {name for group in kept for name in group.instances}
        closed = self._opening.closed
        for instances in wanted.values():
            if instances[0].name in members:
                continue
            if closed.issuperset(instances):
                self._opening.begin_as_group(instances)
                continue
            self._opening.open_now(instances, now)
            self._begin(instances, resumed, now)
            self._keep_up()

    def _keep_up(self) -> None:
        """Send adverts that have become due: making many new instances takes longer than peers wait.

        Only those of actives: a Backup must read its socket before it acts on a deadline. The clock is read
        here because this is called many times within one turn of the loop.
        """
        if time.monotonic() - self._kept_up_at < _KEEP_UP:
            return
        for group in self._groups:
            now = time.monotonic()
            if group.state is RouterState.ACTIVE and (at := group.deadline) is not None and at <= now:
                group.tick(now)
        self._kept_up_at = time.monotonic()

    def _begin(self, instances: list[VrrpInstance], resumed: Mapping[str, Resumption], now: float) -> None:
        group = self._new_group(instances, now)
        self._groups.append(group)
        group.on_change = self._environment.loop.add_one_of_many(group, prompt=group.prompt)
        if any(each.name in resumed for each in instances):
            group.resume(now, resumed)  # an instance new to the group follows it
        else:
            group.start(now)
        for bug in self._opening.take_bugs(instances):
            group.fail(bug, now)

    def _new_group(self, instances: list[VrrpInstance], now: float) -> RouterGroup:
        return RouterGroup(instances, self._observer, now=now, on_left=self.remove)

    def _drop(self, group: RouterGroup) -> None:
        self._groups = [each for each in self._groups if each is not group]
        self._environment.loop.remove(group)
