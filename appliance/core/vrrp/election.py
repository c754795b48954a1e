"""The election of one virtual router: RFC 9568 section 6.4, with FAULT, hand-over and operator commands.

A pure state machine: events and `now` (monotonic seconds) in, effects out; `deadline` is when to call `tick`
next. `election_table` has the states with a drawing, and maps each event to its action; `election_actions`
performs it. The driver reads its sockets before each tick, so that no timer overtakes an advertisement.
"""

from typing import ParamSpec

from appliance.core.vrrp import election_table as table
from appliance.core.vrrp.election_actions import ElectionActions
from appliance.core.vrrp.election_messages import (
    OWNER,
    AnnounceAddresses,
    Cause,
    Effect,
    ElectionSettings,
    Entered,
    HandOverEnded,
    KeepAnnounced,
    Left,
    ReceivedAdvert,
    ReleaseAddresses,
    Resumption,
    RouterState,
    SendAdvert,
    SplitBrain,
    TakeAddresses,
    UnexpectedEvent,
)
from appliance.core.vrrp.election_table import ElectionState, Row
from appliance.core.vrrp.hand_over import SuccessorsHeard
from appliance.core.vrrp.timers import ClaimHold

__all__ = [
    "OWNER",
    "AnnounceAddresses",
    "Cause",
    "Effect",
    "Election",
    "ElectionSettings",
    "Entered",
    "HandOverEnded",
    "KeepAnnounced",
    "Left",
    "ReceivedAdvert",
    "ReleaseAddresses",
    "Resumption",
    "RouterState",
    "SendAdvert",
    "SplitBrain",
    "TakeAddresses",
    "UnexpectedEvent",
]

_Given = ParamSpec("_Given")


class Election(ElectionActions):
    """The state machine of one virtual router. Methods return the effects in the order to perform them."""

    __slots__ = ("_state",)

    def __init__(self, settings: ElectionSettings, *, priority: int | None = None) -> None:
        self._state = ElectionState.INITIALIZE
        super().__init__(settings=settings, priority=settings.priority if priority is None else priority)

    def inform(self, by: str) -> None:
        """Note that a program of this node knows what connections there are."""
        self.informed_by.add(by)

    @property
    def handing_over(self) -> bool:
        """Whether it keeps the addresses only until a successor advertises, because of `stop` or `move`."""
        return self._state in {ElectionState.MOVING, ElectionState.STOPPING}

    @property
    def has_successor(self) -> bool:
        """Whether it hands over and a successor has advertised."""
        return self.handing_over and self.hand_over.successor is not None

    @property
    def deadline(self) -> float | None:
        """When to `tick` next; None for never."""
        match self._state:
            case ElectionState.BACKUP:
                return self.down_timer.deadline
            case ElectionState.ACTIVE:
                return self.adver_timer.deadline
            case ElectionState.MOVING | ElectionState.STOPPING:
                return self.hand_over.deadline
        return None

    # Events

    def start(self, now: float) -> list[Effect]:
        """Start (RFC 9568 section 6.4.1): listen first, whatever the priority."""
        return self._run(table.STARTUP, Cause.STARTED, now)

    def resume(self, now: float, how: Resumption = Resumption.AFTER_CRASH) -> list[Effect]:
        """Continue as Active: an earlier run of this program was active, and the addresses are still here."""
        return self._run(table.RESUME, how, now)

    def stop(self, now: float) -> list[Effect]:
        """Stop (Shutdown in RFC 9568 section 6.4): an active hands over first. Ends with `Left`."""
        return self._run(table.SHUTDOWN, now)

    def move(self, now: float) -> list[Effect]:
        """Hand over at an operator's request; ends with `HandOverEnded`, at once if no addresses are held."""
        return self._run(table.MOVE, now)

    def reclaim(self, now: float) -> list[Effect]:  # noqa: ARG002  # every event has its time
        """Forget that the addresses were moved away: preempt a worse active at its next advertisement."""
        self.yielded = False
        return []

    def fault(self, now: float, cause: Cause = Cause.FAULT) -> list[Effect]:
        """Give up at once: this router cannot serve."""
        return self._run(table.FAULT, cause, now)

    def recover(self, now: float, cause: Cause = Cause.RECOVERED) -> list[Effect]:
        """Take part again after a fault."""
        return self._run(table.RECOVERY, cause, now)

    def follow_group(self, state: RouterState, now: float, cause: Cause = Cause.GROUP) -> list[Effect]:
        """Follow the sync group into ACTIVE, FAULT or otherwise BACKUP."""
        if state is RouterState.FAULT:
            return self.fault(now, cause)
        row = table.GROUP_ACTIVE if state is RouterState.ACTIVE else table.GROUP_BACKUP
        return self._run(row, cause, now)

    def receive(self, received: ReceivedAdvert, now: float) -> list[Effect]:
        """Process a valid advertisement of this virtual router."""
        if received.sender == self.settings.own:
            # A switch may send our own frame back to us.
            return []
        self.note_received(received, now)
        return self._run(self._compare(received), received, now)

    def set_priority(self, priority: int, now: float) -> list[Effect]:
        """Set the effective priority, which the weight of a track has changed."""
        before, self.priority = self.priority, priority
        return self._run(table.PRIORITY, before, now)

    def change_settings(self, settings: ElectionSettings, now: float) -> list[Effect]:
        """Set new parameters of the same virtual router; state and effective priority stay."""
        before, self.settings = self.settings, settings
        return [] if before.advert == settings.advert else self._run(table.INTERVAL, now)

    def tick(self, now: float, late: float = 0.0) -> list[Effect]:
        """Do what is due; `late` is how many seconds too late this wake-up is."""
        due = self.deadline
        if due is None or now < due:
            return []
        if self._state is ElectionState.BACKUP:
            return self._claim(now, late)
        if self._state is ElectionState.ACTIVE:
            return self._run(table.ADVER_TIMER, now)
        return self._run(self._hand_over_timer(now), now)

    # Methods that only move a timer

    def hold_claim(self, until: float, why: ClaimHold = ClaimHold.CONFLICT) -> None:
        """Do not claim before `until`; a time in the past ends the hold. An active router stays active."""
        self.down_timer.hold(until, why)

    def release_with_group(self, successors: SuccessorsHeard, now: float) -> None:
        """Release the addresses with the sync group: not before all its members have successors."""
        if self.handing_over:
            self.hand_over.follow_group(successors, now=now)

    def _run(self, row: Row[_Given], *given: _Given.args, **named: _Given.kwargs) -> list[Effect]:
        step = row.steps.get(self._state)
        if step is None:
            return [UnexpectedEvent(event=row.event, state=self._state)]
        self.previous = self.state
        if step.then is not self._state:
            self._state = step.then
            self.state = step.then.shown
        return step.action(self, *given, **named)

    def _compare(self, received: ReceivedAdvert) -> Row[ReceivedAdvert, float]:
        if received.priority == 0:
            return table.ADVERT_ZERO
        if received.priority == self.priority and not self.decides_ties:
            return table.ADVERT_EQUAL
        # RFC 9568 section 6.4.3: the greater priority wins, then the greater primary address.
        theirs, ours = (received.priority, received.sender), (self.priority, self.settings.own)
        return table.ADVERT_HIGHER if theirs > ours else table.ADVERT_LOWER

    def _claim(self, now: float, late: float) -> list[Effect]:
        if self.down_timer.postpones(now, late=late, interval=self.active_interval):
            return []
        return self._run(table.ACTIVE_DOWN_TIMER, self.claim_cause(now), now)

    def _hand_over_timer(self, now: float) -> Row[float]:
        if self.hand_over.repeats(now):
            return table.REPEAT_TIMER
        return table.RELEASE_TIMER if self.hand_over.may_release else table.HAND_OVER_TIMER
