"""Tells what has happened to the virtual routers: log, notify commands, board, and who waits to hear it."""

import time
from collections.abc import Callable
from typing import Final

from structlog.typing import FilteringBoundLogger

from appliance.core.tracking.notify_commands import commands
from appliance.core.vrrp.election import Entered, RouterState, SplitBrain, UnexpectedEvent
from appliance.net.control.loop_sockets import Deferred
from appliance.vrrp.instance.vrrp_instance import VrrpInstance
from appliance.vrrp.router_group import RouterGroup
from appliance.wire.lines.control import Answer, bad, good
from appliance.wire.lines.tracker_lines import RunCommand

_LATE_PAUSE: Final = 1.0  # seconds between two lines about late wake-ups
_TROUBLE: Final = frozenset({RouterState.FAULT})


class LateWakeups:
    """Wake-ups that came too late: how many, and by how many seconds the worst one."""

    def __init__(self) -> None:
        self.count = 0
        self.latest = 0.0


class RouterReports:
    """The listener of every group. `run` has a notify command run, `touch` has the board written."""

    def __init__(
        self,
        log: FilteringBoundLogger,
        *,
        run: Callable[[RunCommand], None],
        touch: Callable[[], None],
        left: Callable[[RouterGroup], None],
    ) -> None:
        self.log = log
        self.lateness = LateWakeups()
        self._run = run
        self._touch = touch
        self._left = left
        self._moves: dict[str, list[Deferred]] = {}
        self._late_said = float("-inf")

    def wait_for_move(self, name: str) -> Deferred:
        """Return the answer that is given when a planned hand-over of this router has ended."""
        answer = Deferred()
        self._moves.setdefault(name, []).append(answer)
        return answer

    def entered(self, instance: VrrpInstance, entered: Entered) -> None:
        """Log a transition, have its commands run, and publish it."""
        say = self.log.warning if entered.state in _TROUBLE else self.log.info
        facts: dict[str, object] = {"peer": entered.peer, "priority": instance.election.priority}
        if entered.state is RouterState.FAULT:
            facts["reasons"] = list(instance.reasons.values())
        say(
            "vrrp-state",
            router=instance.name,
            state=entered.state.value,
            previous=entered.previous.value,
            cause=entered.cause.value,
            **facts,
        )
        self._touch()
        self._notify(instance, entered)

    def split_brain(self, instance: VrrpInstance, split: SplitBrain) -> None:
        """Log another active that was heard while active."""
        self.log.warning(
            "split-brain",
            router=instance.name,
            peer=split.peer,
            priority=split.priority,
            own_priority=instance.election.priority,
            stays=split.winner,
        )

    def handed_over(self, instance: VrrpInstance, successor: str | None) -> None:
        """Answer whoever asked for the hand-over."""
        self.log.info("hand-over", router=instance.name, successor=successor)
        if successor:
            self._answer(instance, good(name=instance.name, successor=successor))
        elif instance.election.state is RouterState.FAULT:
            self._answer(instance, bad(f"{instance.name}: in fault before anybody took over"))
        else:
            self._answer(instance, bad(f"{instance.name}: nobody took over in time, it stays here"))

    def cut_short(self, instance: VrrpInstance, why: str) -> None:
        """Answer whoever asked for the hand-over, before what ends it is done."""
        self._answer(instance, bad(f"{instance.name}: {why}"))

    def left(self, group: RouterGroup) -> None:
        """Forget a group that has left."""
        self._left(group)

    def unexpected(self, instance: VrrpInstance, unexpected: UnexpectedEvent) -> None:
        """Log once an event that cannot happen in the election's state: a bug. The router goes on."""
        if instance.counters.first(f"unexpected {unexpected.event}", unexpected.state):
            self.log.error(
                "election-unexpected",
                router=instance.name,
                happened=unexpected.event,
                state=unexpected.state,
            )

    def late(self, group: RouterGroup, seconds: float) -> None:
        """Count a late wake-up, and say it now and then."""
        lateness, now = self.lateness, time.monotonic()
        lateness.count += 1
        lateness.latest = max(lateness.latest, seconds)
        if now - self._late_said >= _LATE_PAUSE:
            self._late_said = now
            self.log.warning(
                "late-wakeup",
                routers=list(group.instances),
                seconds=round(seconds, 6),
                count=lateness.count,
            )

    def crashed(self, group: RouterGroup, error: Exception) -> None:
        """Log a bug that one group met with."""
        self.log.error("router-crashed", routers=list(group.instances), exc_info=error)

    def _answer(self, instance: VrrpInstance, answer: Answer) -> None:
        for each in self._moves.pop(instance.name, ()):
            each.resolve(answer)

    def _notify(self, instance: VrrpInstance, entered: Entered) -> None:
        notify, router = instance.router.notify, instance.router
        for words in commands(router, entered.state, priority=instance.election.priority):
            self._run(RunCommand(router=router.name, words=words, user=notify.user, timeout=notify.timeout))
