"""All virtual routers here, in their groups, and how a new configuration changes them.

A router that did not change keeps its instance: its sockets, its state and its addresses.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from appliance.core.vrrp.election import RouterState
from appliance.core.vrrp.reload_plan import Added, Removed, Replaced, Revised, changes
from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.vrrp.instance.environment import RouterEnvironment
from appliance.vrrp.instance.vrrp_instance import VrrpInstance
from appliance.vrrp.opening import Look, Opening, OpeningOutcome, OpeningPhase
from appliance.vrrp.router_group import GroupObserver, RouterGroup

_PATIENCE: Final = 0.001  # seconds of a reload after which it is looked whether something is due


class RouterGroups:
    """The groups; `leaving` are those that a reload or a stop has told to go."""

    def __init__(self, environment: RouterEnvironment, listener: GroupObserver, look: Look) -> None:
        self.leaving: list[RouterGroup] = []
        self._environment = environment
        self._listener = listener
        self._look = look
        self._groups: list[RouterGroup] = []
        self._instances: dict[str, VrrpInstance] = {}
        self._opening = Opening(look=look, begin=lambda instances, now: self._begin(instances, set(), now))
        self._kept_up = float("-inf")
        environment.loop.add(self._opening)

    def __iter__(self) -> Iterator[RouterGroup]:
        return iter(tuple(self._groups))

    @property
    def instances(self) -> tuple[VrrpInstance, ...]:
        """Return those that are configured, in the order in which they came."""
        return tuple(self._instances.values())

    def find(self, name: str) -> tuple[RouterGroup, VrrpInstance] | None:
        """Return a router of that name with its group."""
        for group in self._groups:
            if name in group.instances:
                return group, group.instances[name]
        return None

    def begin(self, routers: Iterable[VirtualRouter], *, resumes: Callable[[VrrpInstance], bool]) -> None:
        """Open these, the first ones, at once; `resumes` says which goes on where an earlier life was active.

        It is asked when all have been looked at.
        """
        for router in routers:
            self._instances[router.name] = self._new(router)
        resumed = {each.name for each in self.instances if resumes(each)}
        self._regroup(resumed, time.monotonic())

    def apply(
        self, routers: Iterable[VirtualRouter], now: float, *, then: Callable[[OpeningOutcome], None]
    ) -> None:
        """Make these the routers; `then` is called when those that are new take part, or will not."""
        if self._opening.phase is OpeningPhase.STOPPED:
            then(OpeningOutcome.GIVEN_UP)
            return
        self._opening.finish(now, between=self._keep_up)
        resumed = set[str]()
        revised = list[VrrpInstance]()
        handed_on = list[VrrpInstance]()
        routers = tuple(routers)
        known = dict(self._instances)  # by their old names, which others may have by now
        for change in changes((each.router for each in self.instances), routers):
            match change:
                case Removed(router=router):
                    self._dismiss(known[router.name], now, why="the virtual IP was removed")
                case Replaced(before=before, after=after, keeps=keeps):
                    old = known[before.name]
                    if keeps and old.election.state is RouterState.ACTIVE:
                        self._hand_on(old, after, now)
                        resumed.add(after.name)
                        handed_on.append(old)
                    else:
                        self._dismiss(old, now, why="the virtual IP was replaced by another one")
                    self._instances[after.name] = new = self._new(after)
                    new.election.yielded = old.election.yielded
                case Revised(after=after):
                    self._revise(after, now)
                    revised.append(self._instances[after.name])
                case Added(router=router):
                    self._instances[router.name] = instance = VrrpInstance(router, self._environment)
                    self._opening.add(instance)
            self._keep_up()
        order = {each.name: place for place, each in enumerate(routers)}
        self._instances = dict(sorted(self._instances.items(), key=lambda item: order[item[0]]))
        self._regroup(resumed, now)
        for instance in (*revised, *handed_on):
            instance.holder.settle()
        self._opening.start(now, then=then)

    def remove(self, group: RouterGroup) -> None:
        """Forget a group that has left."""
        self._environment.loop.remove(group)
        group.close()
        self.leaving = [each for each in self.leaving if each is not group]
        self._groups = [each for each in self._groups if each is not group]

    def leave(self, now: float) -> None:
        """Have everybody leave; the listener hears of each group that has."""
        self._opening.stop()
        leaving, self._groups = self._groups, []
        self._instances = {}
        self.leaving += leaving
        for group in leaving:
            for each in group.instances.values():
                self._cut_short(each, "vrrp stops")
            group.leave(now)

    def close(self) -> None:
        """Remove the addresses that are held still, whoever holds them, and let go of all sockets."""
        for each in tuple(self._environment.holders):
            each.release()
        for group in (*self._groups, *self.leaving):
            group.close()

    def _new(self, router: VirtualRouter) -> VrrpInstance:
        instance = VrrpInstance(router, self._environment)
        self._look(instance)
        return instance

    def _revise(self, router: VirtualRouter, now: float) -> None:
        found = self.find(router.name)
        if found is None:
            return
        group, instance = found
        group.revise(instance, router, now)

    def _cut_short(self, instance: VrrpInstance, why: str) -> None:
        """Have a planned hand-over answered that has no successor yet."""
        if instance.election.handing_over and not instance.election.has_successor:
            self._listener.cut_short(instance, why)

    def _dismiss(self, instance: VrrpInstance, now: float, *, why: str) -> None:
        """Have a router leave on its own; what was grouped with it stays."""
        self._detach(instance, now)
        self._cut_short(instance, why)
        group = RouterGroup([instance], self._listener)
        group.on_moved = self._environment.loop.add_one_of_many(group)
        self.leaving.append(group)
        group.leave(now)

    def _hand_on(self, instance: VrrpInstance, successor: VirtualRouter, now: float) -> None:
        """Have a router go without a word, and leave its addresses to the one that takes its place here."""
        self._detach(instance, now)
        instance.hand_on(successor.addresses)
        if instance.election.handing_over:
            now_is = f"{successor.name} with router id {successor.router_id}"
            self._listener.cut_short(instance, f"the virtual IP is {now_is} now, and stays here")
            self._listener.handed_over(instance, None)  # a planned hand-over ends with it

    def _detach(self, instance: VrrpInstance, now: float) -> None:
        """Take a router out of its group, in the state that it is in."""
        if self._instances.get(instance.name) is instance:
            del self._instances[instance.name]
        for group in self._groups:
            if group.instances.get(instance.name) is instance:
                self._drop(group)
                others = [each for each in group.instances.values() if each is not instance]
                if others:
                    self._begin(others, set(), now)
                break

    def _regroup(self, resumed: set[str], now: float) -> None:
        """Put who belongs together into one group; groups that are right already are left alone."""
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
            self._opening.open_now(instances)
            self._begin(instances, resumed, now)
            self._keep_up()

    def _keep_up(self) -> None:
        """Send what is due meanwhile: to make many new routers takes longer than the peers of one wait.

        Only of those that are active: a Backup reads its socket before it acts on a deadline.
        """
        if time.monotonic() - self._kept_up < _PATIENCE:
            return
        for group in self._groups:
            now = time.monotonic()
            if group.state is RouterState.ACTIVE and (at := group.deadline) is not None and at <= now:
                group.tick(now)
        self._kept_up = time.monotonic()

    def _begin(self, instances: list[VrrpInstance], resumed: set[str], now: float) -> None:
        group = RouterGroup(instances, self._listener)
        self._add(group)
        if any(each.name in resumed for each in instances):
            group.resume(now)  # a member that is new to it follows
        else:
            group.start(now)
        for bug in self._opening.bugs(instances):
            group.crashed(bug)

    def _add(self, group: RouterGroup) -> None:
        self._groups.append(group)
        group.on_moved = self._environment.loop.add_one_of_many(group, prompt=group.prompt)

    def _drop(self, group: RouterGroup) -> None:
        self._groups = [each for each in self._groups if each is not group]
        self._environment.loop.remove(group)
