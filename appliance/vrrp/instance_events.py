"""Reports events of instances to the log, the notify commands, the board and waiting operators."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from structlog.typing import FilteringBoundLogger

from appliance.core.tracking.notify_commands import commands, fifo_line
from appliance.core.vrrp.election import Entered, RouterState, SplitBrain, UnexpectedEvent
from appliance.model.operator_events import EventKind, OperatorEvent, Publish, publish_nowhere
from appliance.net.control.deferred_answer import DeferredAnswer
from appliance.vrrp.instance.vrrp_instance import VrrpInstance
from appliance.wire.boards.vrrp_board import VrrpBoard
from appliance.wire.lines.control import Answer, bad, good
from appliance.wire.lines.tracker_lines import RunCommand, WriteLine

_KINDS: Final[Mapping[RouterState, EventKind]] = {
    RouterState.INITIALIZE: EventKind.VIP_STOPPED,
    RouterState.BACKUP: EventKind.VIP_BACKUP,
    RouterState.ACTIVE: EventKind.VIP_ACTIVE,
    RouterState.FAULT: EventKind.VIP_FAULT,
}


def entered_event(instance: VrrpInstance, entered: Entered) -> OperatorEvent:
    """Return the event of a transition; its detail names the other router, or the fault here."""
    words = [f"peer {entered.peer}"] if entered.peer else []
    words += [f"priority {instance.election.priority}"]
    words += instance.faults.messages if entered.state is RouterState.FAULT else []
    return OperatorEvent(
        when=time.time(),
        kind=_KINDS[entered.state],
        subject=instance.name,
        before=entered.previous.value,
        after=entered.state.value,
        cause=entered.cause.value,
        detail=", ".join(words),
    )


def split_event(instance: VrrpInstance, split: SplitBrain) -> OperatorEvent:
    """Return the event of another active router, noticed while this one is active."""
    stays = "this router stays" if split.winner else "the other router stays"
    return OperatorEvent(
        when=time.time(),
        kind=EventKind.SPLIT_BRAIN,
        subject=instance.name,
        cause=f"peer {split.peer}",
        detail=f"its priority {split.priority}, ours {instance.election.priority}: {stays}",
    )


_LATE_PAUSE: Final = 1.0  # seconds between two lines about late wake-ups
_TROUBLE: Final = frozenset({RouterState.FAULT})


class LateWakeups:
    """How many wake-ups came too late, and by how many seconds the worst one did."""

    def __init__(self) -> None:
        self.count = 0
        self.latest = 0.0

    def go_on(self, board: VrrpBoard) -> None:
        """Begin with the counts of an earlier run."""
        self.count, self.latest = board.late_wakeups, board.latest_wakeup


class RouterReports:
    """Observes all groups.

    `run` runs notify commands or writes lines, `touch` the board, `publish` events.
    """

    def __init__(
        self,
        log: FilteringBoundLogger,
        *,
        run: Callable[[RunCommand | WriteLine], None],
        touch: Callable[[], None],
        publish: Publish = publish_nowhere,
    ) -> None:
        self.log = log
        self.lateness = LateWakeups()
        self._run = run
        self._touch = touch
        self._publish = publish
        self._moves: dict[str, list[DeferredAnswer]] = {}
        self._late_logged_at = float("-inf")

    def wait_for_move(self, name: str) -> DeferredAnswer:
        """Return the answer to a `move` command, given when the hand-over of this router has ended."""
        answer = DeferredAnswer()
        self._moves.setdefault(name, []).append(answer)
        return answer

    def entered(self, instance: VrrpInstance, entered: Entered) -> None:
        """Log a transition, run its notify commands, and write the board."""
        say = self.log.warning if entered.state in _TROUBLE else self.log.info
        facts: dict[str, object] = {"peer": entered.peer, "priority": instance.election.priority}
        if entered.state is RouterState.FAULT:
            facts["reasons"] = list(instance.faults.messages)
        say(
            "vrrp-state",
            router=instance.name,
            state=entered.state.value,
            previous=entered.previous.value,
            cause=entered.cause.value,
            **facts,
        )
        self._publish(entered_event(instance, entered))
        self._touch()
        self._notify(instance, entered)

    def split_brain(self, instance: VrrpInstance, split: SplitBrain) -> None:
        """Log another active router, noticed while active."""
        self.log.warning(
            "split-brain",
            router=instance.name,
            peer=split.peer,
            priority=split.priority,
            own_priority=instance.election.priority,
            stays=split.winner,
        )
        self._publish(split_event(instance, split))

    def handed_over(self, instance: VrrpInstance, successor: str | None) -> None:
        """Log the end of a hand-over, and answer the operators that wait for it."""
        self.log.info("hand-over", router=instance.name, successor=successor)
        if successor:
            self._answer(instance, good(name=instance.name, successor=successor))
        elif instance.election.state is RouterState.FAULT:
            self._answer(instance, bad(f"{instance.name}: in fault before another node took over"))
        else:
            self._answer(instance, bad(f"{instance.name}: no other node took over in time, it stays here"))

    def cut_short(self, instance: VrrpInstance, why: str) -> None:
        """Answer the operators that wait for a hand-over, before the step that ends it."""
        self._answer(instance, bad(f"{instance.name}: {why}"))

    def unexpected(self, instance: VrrpInstance, unexpected: UnexpectedEvent) -> None:
        """Log once an event that the election's state rules out, which is a bug. The router continues."""
        if instance.counters.first(f"unexpected {unexpected.event}", unexpected.state):
            self.log.error(
                "election-unexpected",
                router=instance.name,
                happened=unexpected.event,
                state=unexpected.state,
            )

    def late(self, names: Iterable[str], seconds: float, now: float) -> None:
        """Count a late wake-up, and log it unless one was logged a moment ago."""
        lateness = self.lateness
        lateness.count += 1
        lateness.latest = max(lateness.latest, seconds)
        if now - self._late_logged_at >= _LATE_PAUSE:
            self._late_logged_at = now
            self.log.warning(
                "late-wakeup",
                routers=list(names),
                seconds=round(seconds, 6),
                count=lateness.count,
            )

    def crashed(self, names: Iterable[str], error: Exception) -> None:
        """Log a bug in one group."""
        self.log.error("router-crashed", routers=list(names), exc_info=error)

    def _answer(self, instance: VrrpInstance, answer: Answer) -> None:
        for each in self._moves.pop(instance.name, ()):
            each.resolve(answer)

    def _notify(self, instance: VrrpInstance, entered: Entered) -> None:
        notify, router = instance.router.notify, instance.router
        for words in commands(router, entered.state, priority=instance.election.priority):
            self._run(RunCommand(router=router.name, words=words, user=notify.user, timeout=notify.timeout))
        if notify.fifo is not None:
            line = fifo_line(router, entered.state, priority=instance.election.priority)
            self._run(WriteLine(router=router.name, path=notify.fifo, line=line))
