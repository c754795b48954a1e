"""The election of one virtual router: RFC 9568 section 6.4, with Fault, hand-over and what operators expect.

A pure machine: events and `now` (monotonic seconds) in, effects out, and `deadline` says when to `tick` next.
Effects are performed in the order in which they are returned. The driver reads its sockets before each tick.
"""

from appliance.core.vrrp.election_effects import (
    AnnounceAddresses,
    Cause,
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
from appliance.core.vrrp.election_settings import OWNER, ElectionSettings, Heard
from appliance.core.vrrp.hand_over import AfterHandOver, HandOver, SuccessorsHeard
from appliance.core.vrrp.preemption import ActivePeer, PreemptOffer
from appliance.core.vrrp.split_brain import OtherActives
from appliance.core.vrrp.timers import (
    SHORTEST_ADVERT,
    ActiveDownTimer,
    ClaimHold,
    active_down_interval,
    skew_time,
)

__all__ = [
    "OWNER",
    "AnnounceAddresses",
    "Cause",
    "Effect",
    "Election",
    "ElectionSettings",
    "Entered",
    "HandOverEnded",
    "Heard",
    "Left",
    "ReleaseAddresses",
    "RouterState",
    "SendAdvert",
    "SplitBrain",
    "TakeAddresses",
]


class Election:
    """One virtual router's machine. Each method returns the effects in the order to perform them.

    `priority` is the effective one, `active_interval` Active_Adver_Interval, `peer` the active that a Backup
    hears, `yielded` whether an operator moved the addresses away: then a worse active is left alone.
    `decides_ties` False leaves equal priorities to another member of the sync group.
    """

    __slots__ = (
        "_active_peer",
        "_advert_at",
        "_down_timer",
        "_hand_over",
        "_heard_at",
        "_joined",
        "_listened",
        "_other_actives",
        "_preempt_offer",
        "active_interval",
        "decides_ties",
        "peer",
        "priority",
        "settings",
        "since",
        "state",
        "yielded",
    )

    def __init__(self, terms: ElectionSettings, *, priority: int | None = None) -> None:
        self.settings = terms
        self.priority = terms.priority if priority is None else priority
        self.state = RouterState.INITIALIZE
        self.active_interval = terms.advert
        self.since: float | None = None
        self.peer: str | None = None
        self.yielded = False
        self.decides_ties = True
        self._heard_at = float("-inf")
        self._joined = 0.0
        self._listened = False
        self._advert_at = 0.0
        self._down_timer = ActiveDownTimer()
        self._active_peer = ActivePeer()
        self._preempt_offer = PreemptOffer()
        self._other_actives = OtherActives()
        self._hand_over: HandOver | None = None

    @property
    def deadline(self) -> float | None:
        """When to `tick` next; None is never."""
        if self._hand_over is not None:
            return self._hand_over.deadline
        if self.state is RouterState.ACTIVE:
            return self._advert_at
        return self._down_timer.deadline if self.state is RouterState.BACKUP else None

    @property
    def handing_over(self) -> bool:
        """Whether it holds the addresses only until a successor is heard: `leave` or `move` goes on."""
        return self._hand_over is not None

    @property
    def has_successor(self) -> bool:
        """Whether it leaves and a successor was heard."""
        return self._hand_over is not None and self._hand_over.successor is not None

    @property
    def skew_time(self) -> float:
        """Skew_Time (RFC 9568 section 6.1), seconds."""
        return skew_time(self.settings.version, priority=self.priority, interval=self.active_interval)

    @property
    def active_down_interval(self) -> float:
        """Active_Down_Interval (RFC 9568 section 6.1), seconds."""
        return active_down_interval(
            self.settings.version,
            priority=self.priority,
            interval=self.active_interval,
            adverts=self.settings.down_timer_adverts,
        )

    def start(self, now: float) -> list[Effect]:
        """Take part (RFC 9568 section 6.4.1): listen first, whatever the priority."""
        if self.state is not RouterState.INITIALIZE:
            return []
        return [self._join(Cause.STARTED, now)]

    def resume(self, now: float) -> list[Effect]:
        """Go on as Active: an earlier life of this program was it, and the addresses are still here."""
        if self.state is not RouterState.INITIALIZE:
            return []
        self._joined = now
        return self._become_active(Cause.RESUMED, now)

    def tick(self, now: float, late: float = 0.0) -> list[Effect]:
        """Do what is due; `late` is by how many seconds this wake-up missed its time."""
        due = self.deadline
        if due is None or now < due:
            return []
        if self._hand_over is not None:
            return self._depart(self._hand_over, now)
        if self.state is RouterState.ACTIVE:
            return self._advertise(due, now)
        return self._claim(now, late)

    def hear(self, heard: Heard, now: float) -> list[Effect]:
        """Take a valid advertisement of this virtual router."""
        if heard.sender == self.settings.own:
            return []
        self._heard_at = now if heard.priority else float("-inf")
        self._preempt_offer.heard(heard)
        if self._hand_over is not None:
            return self._hear_leaving(self._hand_over, heard, now)
        if self.state is RouterState.BACKUP:
            return self._hear_backup(heard, now)
        if self.state is RouterState.ACTIVE:
            return self._hear_active(heard, now)
        return []

    def set_priority(self, priority: int, now: float) -> list[Effect]:
        """Take a new effective priority. An active says it at once: a better Backup need not wait for it."""
        before, self.priority = self.priority, priority
        if self.state is not RouterState.ACTIVE or self.handing_over or priority == before:
            return []
        if not self.settings.preempt:
            self._preempt_offer.priority_changed(priority, before=before, at=now + self.active_down_interval)
        return [SendAdvert(priority=priority)]

    def fault(self, now: float, cause: Cause = Cause.FAULT) -> list[Effect]:
        """Leave at once: this router cannot serve. The Backup is told, so that it need not wait."""
        if self.state is RouterState.FAULT:
            return []
        effects: list[Effect] = []
        if self.state is RouterState.ACTIVE:
            effects = [SendAdvert(priority=0), ReleaseAddresses()]
        hand_over, self._hand_over = self._hand_over, None
        if hand_over is not None and hand_over.purpose is AfterHandOver.STOP:
            return [*effects, *self._stop(now)]
        effects.append(self._enter(RouterState.FAULT, cause, now))
        if hand_over is not None:
            effects.append(HandOverEnded(successor=hand_over.successor))
        return effects

    def recover(self, now: float, cause: Cause = Cause.RECOVERED) -> list[Effect]:
        """Take part again after a fault."""
        if self.state is not RouterState.FAULT:
            return []
        return [self._join(cause, now)]

    def stop(self, now: float) -> list[Effect]:
        """Stop (RFC 9568 sections 6.4.2 and 6.4.3, Shutdown), make before break; ends with Left."""
        if self._hand_over is not None:
            return self._turn_into_stop(self._hand_over)
        if self.state is RouterState.ACTIVE:
            return self._begin(AfterHandOver.STOP, now)
        return self._stop(now)

    def move(self, now: float) -> list[Effect]:
        """Hand over on purpose; ends with HandOver, at once where there is nothing to hand over."""
        if self._hand_over is not None:
            return []
        if self.state is RouterState.ACTIVE:
            return self._begin(AfterHandOver.MOVE, now)
        return [HandOverEnded(successor=None)]

    def reclaim(self, now: float) -> list[Effect]:  # noqa: ARG002  # every event has its time
        """Forget that the addresses were moved away: the next advertisement of a worse active preempts it."""
        self.yielded = False
        return []

    def change_settings(self, terms: ElectionSettings, now: float) -> list[Effect]:
        """Take new parameters of the same virtual router; state and effective priority stay."""
        before, self.settings = self.settings, terms
        if before.advert == terms.advert:
            return []
        if self.state is RouterState.ACTIVE:
            self.active_interval = terms.advert
            self._advert_at = min(self._advert_at, now + terms.advert)
        elif terms.version == 2 or self.peer is None:
            self.active_interval = terms.advert
            self._down_timer.restart(now + self.active_down_interval)
        return []

    def follow_group(self, state: RouterState, now: float, cause: Cause = Cause.GROUP) -> list[Effect]:
        """Follow the sync group into BACKUP, ACTIVE or FAULT."""
        if state is RouterState.FAULT:
            return self.fault(now, cause)
        if state is self.state or self.handing_over:
            return []
        if state is RouterState.ACTIVE:
            return self._become_active(cause, now)
        if self.state is RouterState.ACTIVE:
            return self._retreat(cause, now)
        return self.recover(now, cause)

    def hold_claim(self, until: float, why: ClaimHold = ClaimHold.CONFLICT) -> None:
        """Do not claim before `until`; a time that has passed ends it. An active stays."""
        self._down_timer.hold(until, why)

    @property
    def other_active_until(self) -> float:
        """Until when another active counts as there: a down interval after it was heard, in any state."""
        return self._heard_at + self.active_down_interval

    def release_with_group(self, successors: SuccessorsHeard, now: float) -> None:
        """Release the addresses with the sync group: not before all its members have successors."""
        if self._hand_over is not None:
            self._hand_over.follow_group(successors, now=now)

    # -- Backup: RFC 9568 section 6.4.2 ------------------------------------------------------------------

    def _hear_backup(self, heard: Heard, now: float) -> list[Effect]:
        self.peer = heard.peer
        if heard.priority == 0:
            # The active leaves: only the skew time is left of the wait, and of listening.
            self._active_peer.left(heard.sender)
            self._down_timer.start(now + self.skew_time, Cause.ACTIVE_LEFT)
        elif self._active_peer.may_be_preempted(heard, own=self.priority, preempt=self._preempts(now)):
            # The clause discards it, and a better router waits for the whole down interval: skew is enough.
            self._down_timer.shorten(now + self.skew_time, Cause.PREEMPTED)
        else:
            self._learn(heard)
            self._down_timer.start(now + self.active_down_interval, Cause.ACTIVE_DOWN)
        return []

    def _preempts(self, now: float) -> bool:
        return (
            self.settings.preempt and not self.yielded and now >= self._joined + self.settings.preempt_delay
        )

    def _claim(self, now: float, late: float) -> list[Effect]:
        if self._down_timer.postpones(now, late=late, interval=self.active_interval):
            return []
        preempts = self._down_timer.cause is Cause.PREEMPTED
        # A claim may have been put off for longer than the active that it was to preempt has lived.
        died = preempts and now > self.other_active_until
        return self._become_active(Cause.ACTIVE_DOWN if died else self._down_timer.cause, now)

    def _become_active(self, cause: Cause, now: float) -> list[Effect]:
        # The addresses first: who hears the advertisement gives them up.
        entered = self._enter(RouterState.ACTIVE, cause, now, peer=self.peer)
        preempted, self.peer = self.peer, None
        self._listened = True
        self.yielded = False
        self.active_interval = self.settings.advert
        self._advert_at = now + self.settings.advert
        self._active_peer.forget()
        self._preempt_offer.begin(self.priority)
        self._other_actives = OtherActives()
        if cause in {Cause.PREEMPTED, Cause.GROUP}:
            # Who was preempted says once more that it was active.
            self._other_actives.expect(preempted, until=self._advert_at)
        return [TakeAddresses(), SendAdvert(priority=self.priority), self._announce(), entered]

    # -- Active: RFC 9568 section 6.4.3 ------------------------------------------------------------------

    def _advertise(self, due: float, now: float) -> list[Effect]:
        if self._preempt_offer.due(now, own=self.priority):
            # Twice the interval: the successor's skew time ends before the next advertisement.
            self._advert_at = now + 2 * self.settings.advert
            self._other_actives.expect(until=self._advert_at)
            return [SendAdvert(priority=0)]
        self._other_actives.may_answer(now, interval=self.settings.advert)  # all who have asked so far
        # From the deadline and not from now, so that lateness does not add up.
        self._advert_at = (due if now - due < self.settings.advert else now) + self.settings.advert
        effects: list[Effect] = [SendAdvert(priority=self.priority)]
        if self._other_actives.may_announce(now):
            effects.append(self._announce())
        return effects

    def _hear_active(self, heard: Heard, now: float) -> list[Effect]:
        if heard.priority == 0:
            # Somebody leaves: say at once that there is an active.
            return self._answer(now)
        if heard.priority != self.priority:
            return self._give_way(heard, now) if heard.priority > self.priority else self._insist(heard, now)
        if not self.decides_ties:
            return []
        return self._give_way(heard, now) if heard.sender > self.settings.own else self._insist(heard, now)

    def _give_way(self, heard: Heard, now: float) -> list[Effect]:
        tie = heard.priority == self.priority
        self.peer = heard.peer
        self._learn(heard)
        self._active_peer.gave_way_to(heard)
        effects = self._retreat(Cause.HIGHER_ADDRESS if tie else Cause.HIGHER_PRIORITY, now)
        if tie:
            # A higher priority is how preemption looks, too; nobody preempts an equal one.
            effects.append(SplitBrain(peer=heard.peer, priority=heard.priority, winner=False))
        return effects

    def _insist(self, heard: Heard, now: float) -> list[Effect]:
        # The clause answers at once; a conflict that is won is announced, too.
        effects = self._answer(now)
        news = self._other_actives.heard(heard.peer, now=now, silence=self.active_down_interval)
        if self._other_actives.may_announce(now):
            effects.append(self._announce())
        if news:
            effects.append(SplitBrain(peer=heard.peer, priority=heard.priority, winner=True))
        return effects

    def _answer(self, now: float) -> list[Effect]:
        """Say at once that there is an active, or a little later where that was just said."""
        if not self._other_actives.may_answer(now, interval=self.settings.advert):
            self._advert_at = min(self._advert_at, self._other_actives.answer_at)
            return []
        self._advert_at = now + self.settings.advert
        return [SendAdvert(priority=self.priority)]

    def _retreat(self, cause: Cause, now: float) -> list[Effect]:
        # One more advertisement than the clause has: the winner, any that keeps to the clause, answers it,
        # and so knows of the conflict and announces the addresses after our announcements.
        return [SendAdvert(priority=self.priority), *self._become_backup(cause, now)]

    def _become_backup(self, cause: Cause, now: float) -> list[Effect]:
        entered = self._enter(RouterState.BACKUP, cause, now, peer=self.peer)
        self._down_timer.start(now + self.active_down_interval, Cause.ACTIVE_DOWN)
        return [ReleaseAddresses(), entered]

    # -- Leaving -----------------------------------------------------------------------------------------

    def _begin(self, purpose: AfterHandOver, now: float) -> list[Effect]:
        self._hand_over = HandOver(purpose, now=now, timeout=self.settings.hand_over)
        return [SendAdvert(priority=0)]

    def _turn_into_stop(self, hand_over: HandOver) -> list[Effect]:
        if hand_over.purpose is AfterHandOver.STOP:
            return []
        hand_over.purpose = AfterHandOver.STOP
        return [HandOverEnded(successor=hand_over.successor)]

    def _hear_leaving(self, hand_over: HandOver, heard: Heard, now: float) -> list[Effect]:
        if heard.priority == 0:
            hand_over.successor_left()
        else:
            self.peer = heard.peer
            self._learn(heard)
            hand_over.successor_heard(heard.peer, now=now)
        return []

    def _depart(self, hand_over: HandOver, now: float) -> list[Effect]:
        if hand_over.repeats(now):
            return [SendAdvert(priority=0)]
        if hand_over.purpose is AfterHandOver.STOP:
            self._hand_over = None
            return [ReleaseAddresses(), *self._stop(now)]
        self._hand_over = None
        if hand_over.may_release:
            self.yielded = True
            effects = self._become_backup(Cause.HANDED_OVER, now)
            return [*effects, HandOverEnded(successor=hand_over.successor)]
        self._advert_at = now + self.settings.advert
        return [SendAdvert(priority=self.priority), HandOverEnded(successor=None)]

    def _stop(self, now: float) -> list[Effect]:
        if self.state is RouterState.INITIALIZE:
            return [Left()]
        return [self._enter(RouterState.INITIALIZE, Cause.STOPPED, now, peer=self.peer), Left()]

    # -- What several states share -----------------------------------------------------------------------

    def _join(self, cause: Cause, now: float) -> Entered:
        self._wait_first(now)
        self._joined = now
        self.peer = None
        self.active_interval = self.settings.advert
        self._active_peer.forget()
        if self.priority != OWNER:
            # Section 6.4.1 lets only the owner claim at once.
            self._down_timer.extend(now + self.active_down_interval)
        return self._enter(RouterState.BACKUP, cause, now)

    def _wait_first(self, now: float) -> None:
        """Listen once, after the start, or after the fault that there was then, which shortens nothing."""
        if self._listened:
            self._down_timer.start(max(now, self._down_timer.listens_until), Cause.ACTIVE_DOWN)
            return
        self._listened = True
        self._down_timer.listen(now + self.settings.listen)

    def _enter(self, state: RouterState, cause: Cause, now: float, *, peer: str | None = None) -> Entered:
        previous, self.state = self.state, state
        self.since = now
        return Entered(state=state, previous=previous, cause=cause, peer=peer)

    def _learn(self, heard: Heard) -> None:
        if self.settings.version == 3:
            self.active_interval = max(heard.interval, SHORTEST_ADVERT)

    def _announce(self) -> AnnounceAddresses:
        return AnnounceAddresses(repeat=self.settings.announce.repeat)
