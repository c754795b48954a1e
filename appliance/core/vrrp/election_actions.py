"""What one virtual router does at an event of its election: the actions of `election_table`.

The variables are those of RFC 9568 section 6.1, the timers those of section 6.2. When an action runs, the
state has already changed, to the one in the table. Actions return effects in the order to perform them.
"""

from dataclasses import dataclass, field

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
)
from appliance.core.vrrp.hand_over import HandOver
from appliance.core.vrrp.preemption import ActivePeer, PreemptOffer
from appliance.core.vrrp.split_brain import OtherActives
from appliance.core.vrrp.timers import (
    SHORTEST_ADVERT,
    ActiveDownTimer,
    AdverTimer,
    active_down_interval,
    skew_time,
)


@dataclass(slots=True, kw_only=True, eq=False)
class ElectionActions:
    """The variables of one virtual router, and its actions. Setting `priority` here advertises nothing.

    `state` is the state shown to others (a router that hands over is active), since `since`, None before the
    start; `previous` is the one before the event. `active_interval` is Active_Adver_Interval, `peer` the
    active router that a Backup follows. `yielded`: an operator moved the addresses away, so a worse active is
    not preempted. `informed_by` are the programs that know what connections there are: it need not wait for
    them before it preempts. `decides_ties` False: another member of the sync group decides. `hand_over` is
    the present hand-over, or the last one.
    """

    settings: ElectionSettings
    priority: int
    state: RouterState = RouterState.INITIALIZE
    previous: RouterState = RouterState.INITIALIZE
    since: float | None = None
    active_interval: float = field(init=False)
    peer: str | None = None
    yielded: bool = False
    informed_by: set[str] = field(default_factory=set)
    decides_ties: bool = True
    down_timer: ActiveDownTimer = field(default_factory=ActiveDownTimer)
    adver_timer: AdverTimer = field(default_factory=AdverTimer)
    hand_over: HandOver = field(default_factory=lambda: HandOver(now=0.0, timeout=0.0))
    _heard_at: float = float("-inf")
    _joined: float = 0.0
    _listened: bool = False
    _active_peer: ActivePeer = field(default_factory=ActivePeer)
    _preempt_offer: PreemptOffer = field(default_factory=PreemptOffer)
    _other_actives: OtherActives = field(default_factory=OtherActives)

    def __post_init__(self) -> None:
        self.active_interval = self.settings.advert

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

    @property
    def other_active_until(self) -> float:
        """Until when another active counts as present, in any state: a down interval after it advertised."""
        return self._heard_at + self.active_down_interval

    def claim_cause(self, now: float) -> Cause:
        """Return why a Backup claims when its Active_Down_Timer expires."""
        # The claim may have been delayed (`hold`) until the active that it was to preempt went down by
        # itself.
        if self.down_timer.cause is Cause.PREEMPTED and now > self.other_active_until:
            return Cause.ACTIVE_DOWN
        return self.down_timer.cause

    @property
    def awaited_informers(self) -> frozenset[str]:
        """The programs whose `inform` matters, now or later: they do not know what connections there are."""
        return self.settings.informers - self.informed_by

    def uninformed_for(self, now: float) -> float:
        """Return how many seconds longer it does not preempt unless it is informed."""
        if not self.awaited_informers or self.state is not RouterState.BACKUP:
            return 0.0
        return max(self._joined + self.settings.informed_within - now, 0.0)

    def note_received(self, received: ReceivedAdvert, now: float) -> None:
        """Store the sender of an advertisement, in any state."""
        self._heard_at = now if received.priority else float("-inf")
        self._preempt_offer.store(received)

    def stay(self, *_given: object) -> list[Effect]:
        """Do nothing: the event changes nothing in this state."""
        return []

    # Initialize and Fault: RFC 9568 section 6.4.1

    def join(self, cause: Cause, now: float) -> list[Effect]:
        """Start as a Backup, whatever the priority: listen before the first claim."""
        if self._listened:
            # A fault during the first wait, which `listen` begins once after the start, does not shorten it.
            self.down_timer.start(max(now, self.down_timer.listens_until), Cause.ACTIVE_DOWN)
        else:
            self._listened = True
            self.down_timer.listen(now + self.settings.listen)
        self._joined = now
        self.informed_by.clear()
        self.peer = None
        self.active_interval = self.settings.advert
        self._active_peer.forget()
        if self.priority != OWNER:
            # Section 6.4.1 lets only the owner of the addresses claim without waiting for others.
            self.down_timer.extend(now + self.active_down_interval)
        return [self._entered(cause, now)]

    def stay_as_active(self, how: Resumption, now: float) -> list[Effect]:
        """Continue as Active: an earlier run of this program was active, and the addresses are still here."""
        self._joined = now
        effects = self.become_active(Cause.RESUMED, now)
        if how is Resumption.AFTER_CRASH:
            return effects
        return [KeepAnnounced() if isinstance(each, AnnounceAddresses) else each for each in effects]

    # Backup: RFC 9568 section 6.4.2

    def receive_as_backup(self, received: ReceivedAdvert, now: float) -> list[Effect]:
        """Restart Active_Down_Timer, or let it run on if the sender may be preempted."""
        self.peer = received.peer
        if received.priority == 0:
            # The active stops. Only the skew time remains of the wait, and of the first wait after the start.
            self._active_peer.left(received.sender)
            self.down_timer.start(now + self.skew_time, Cause.ACTIVE_LEFT)
        elif self._active_peer.may_be_preempted(received, own=self.priority, preempt=self._preempts(now)):
            # The clause discards it, so that a better router waits for the whole Active_Down_Interval. The
            # skew time is enough: it lets the best of several Backups go first.
            self.down_timer.shorten(now + self.skew_time, Cause.PREEMPTED)
        else:
            self._learn(received)
            self.down_timer.start(now + self.active_down_interval, Cause.ACTIVE_DOWN)
        return []

    def become_active(self, cause: Cause, now: float) -> list[Effect]:
        """Take the addresses, advertise and announce."""
        entered = self._entered(cause, now, peer=self.peer)
        preempted, self.peer = self.peer, None
        self._listened = True
        self.yielded = False
        self.active_interval = self.settings.advert
        self.adver_timer.start(now + self.settings.advert)
        self._active_peer.forget()
        self._preempt_offer.begin(self.priority)
        self._other_actives = OtherActives()
        if cause in {Cause.PREEMPTED, Cause.GROUP}:
            # The preempted active may advertise once more before our advertisement arrives: that is no split
            # brain.
            self._other_actives.expect(preempted, until=self.adver_timer.deadline)
        # The addresses come first, though the clause advertises first: the active that receives the
        # advertisement removes its own, and from then on no node would have them.
        return [TakeAddresses(), SendAdvert(priority=self.priority), self._announce(), entered]

    # Active: RFC 9568 section 6.4.3

    def advertise(self, now: float) -> list[Effect]:
        """Send the advertisement that is due."""
        if self._preempt_offer.due(now, own=self.priority):
            # Twice the interval: the successor's skew time is over before our next advertisement.
            self.adver_timer.start(now + 2 * self.settings.advert)
            self._other_actives.expect(until=self.adver_timer.deadline)
            return [SendAdvert(priority=0)]
        # This advertisement also answers all other actives that have advertised since the last one.
        self._other_actives.may_answer(now, interval=self.settings.advert)
        self.adver_timer.advance(now, interval=self.settings.advert)
        effects: list[Effect] = [SendAdvert(priority=self.priority)]
        if self._other_actives.may_announce(now):
            effects.append(self._announce())
        return effects

    def answer(self, _heard: ReceivedAdvert, now: float) -> list[Effect]:
        """Advertise at once, or a little later if this router has just advertised.

        Section 6.4.3 answers priority 0 so that the Backups of the stopping router do not claim.
        """
        if not self._other_actives.may_answer(now, interval=self.settings.advert):
            self.adver_timer.shorten(self._other_actives.answer_at)
            return []
        self.adver_timer.start(now + self.settings.advert)
        return [SendAdvert(priority=self.priority)]

    def lose_to(self, received: ReceivedAdvert, now: float) -> list[Effect]:
        """Become Backup of a better active."""
        tie = received.priority == self.priority
        self.peer = received.peer
        self._learn(received)
        self._active_peer.gave_way_to(received)
        effects = self.retreat(Cause.HIGHER_ADDRESS if tie else Cause.HIGHER_PRIORITY, now)
        if tie:
            # A higher priority may be an ordinary preemption. No router preempts an equal: both were active.
            effects.append(SplitBrain(peer=received.peer, priority=received.priority, winner=False))
        return effects

    def win_against(self, received: ReceivedAdvert, now: float) -> list[Effect]:
        """Answer a worse active, so that it becomes Backup, and announce the addresses again.

        RFC 9568 section 6.4.3 sends the advertisement at once so that bridges learn where the addresses are.
        The gratuitous ARPs are keepalived's: hosts and switches may have the loser's.
        """
        effects = self.answer(received, now)
        news = self._other_actives.store(received.peer, now=now, silence=self.active_down_interval)
        if self._other_actives.may_announce(now):
            effects.append(self._announce())
        if news:
            effects.append(SplitBrain(peer=received.peer, priority=received.priority, winner=True))
        return effects

    def retreat(self, cause: Cause, now: float) -> list[Effect]:
        """Become Backup while another router is active."""
        # One advertisement more than in section 6.4.3. The winner answers it, as that section says, so it
        # learns of the conflict and announces the addresses after our last announcement.
        return [SendAdvert(priority=self.priority), *self._become_backup(cause, now)]

    def advertise_change(self, before: int, now: float) -> list[Effect]:
        """Advertise a new effective priority at once: a better Backup need not wait for it."""
        if self.priority == before:
            return []
        if not self.settings.preempt:
            at = now + self.active_down_interval
            self._preempt_offer.priority_changed(self.priority, before=before, at=at)
        return [SendAdvert(priority=self.priority)]

    # Shutdown and hand-overs: Shutdown in RFC 9568 sections 6.4.2 and 6.4.3

    def begin_hand_over(self, now: float) -> list[Effect]:
        """Advertise priority 0, and keep the addresses until a successor advertises or the time is up."""
        self.hand_over = HandOver(now=now, timeout=self.settings.hand_over)
        return [SendAdvert(priority=0)]

    def repeat_priority_zero(self, _now: float) -> list[Effect]:
        """Advertise priority 0 once more: the first advertisement may have been lost."""
        return [SendAdvert(priority=0)]

    def successor_left(self, _heard: ReceivedAdvert, _now: float) -> list[Effect]:
        """Wait for another successor."""
        self.hand_over.successor_left()
        return []

    def successor_heard(self, received: ReceivedAdvert, now: float) -> list[Effect]:
        """Store which router has taken over."""
        self.peer = received.peer
        self._learn(received)
        self.hand_over.successor_heard(received.peer, now=now)
        return []

    def end_move(self, now: float) -> list[Effect]:
        """Release the addresses to the successor, and stay Backup even of a worse one."""
        self.yielded = True
        return [*self._become_backup(Cause.HANDED_OVER, now), self._hand_over_ended()]

    def stay_active(self, now: float) -> list[Effect]:
        """Keep the addresses, as no router has taken them over in time, and advertise that to the Backups."""
        self.adver_timer.start(now + self.settings.advert)
        return [SendAdvert(priority=self.priority), HandOverEnded(successor=None)]

    def nothing_to_move(self, _now: float) -> list[Effect]:
        """Answer a request to move the addresses away: they are not here."""
        return [HandOverEnded(successor=None)]

    def stop_instead_of_move(self, _now: float) -> list[Effect]:
        """Turn the hand-over to another router into the end of this one; keep its successor."""
        return [self._hand_over_ended()]

    def release_and_stop(self, now: float) -> list[Effect]:
        """Release the addresses, with or without a successor, and stop."""
        return [ReleaseAddresses(), *self.leave(now)]

    def leave(self, now: float) -> list[Effect]:
        """Stop a router that has no addresses to hand over."""
        return [self._entered(Cause.STOPPED, now, peer=self.peer), Left()]

    def stop_again(self, _now: float) -> list[Effect]:
        """Report that a router without a part in the election has stopped."""
        return [Left()]

    # Fault

    def enter_fault(self, cause: Cause, now: float) -> list[Effect]:
        """Leave the election; no addresses were held."""
        return [self._entered(cause, now)]

    def fault_as_active(self, cause: Cause, now: float) -> list[Effect]:
        """Give the addresses up at once: this router cannot serve. Priority 0 spares the Backups the wait."""
        return [SendAdvert(priority=0), ReleaseAddresses(), self._entered(cause, now)]

    def fault_while_moving(self, cause: Cause, now: float) -> list[Effect]:
        """Give the addresses up at once, which ends the hand-over."""
        return [*self.fault_as_active(cause, now), self._hand_over_ended()]

    def fault_while_stopping(self, _cause: Cause, now: float) -> list[Effect]:
        """Give the addresses up at once, and stop."""
        return [SendAdvert(priority=0), *self.release_and_stop(now)]

    # New settings

    def change_own_interval(self, now: float) -> list[Effect]:
        """Advertise at the new interval from now on."""
        self.active_interval = self.settings.advert
        self.adver_timer.shorten(now + self.settings.advert)
        return []

    def change_expected_interval(self, now: float) -> list[Effect]:
        """Wait by the new interval, unless the active's own interval is known.

        Version 3 learns it from the advertisements (RFC 9568 section 6.1, Active_Adver_Interval). In version
        2 all routers are configured with the same interval (RFC 3768 section 7.1).
        """
        if self.settings.version == 2 or self.peer is None:
            self.active_interval = self.settings.advert
            self.down_timer.restart(now + self.active_down_interval)
        return []

    # Shared by several actions

    def _preempts(self, now: float) -> bool:
        waited = now >= self._joined + self.settings.preempt_delay and not self.uninformed_for(now)
        return self.settings.preempt and not self.yielded and waited

    def _become_backup(self, cause: Cause, now: float) -> list[Effect]:
        entered = self._entered(cause, now, peer=self.peer)
        self.down_timer.start(now + self.active_down_interval, Cause.ACTIVE_DOWN)
        return [ReleaseAddresses(), entered]

    def _entered(self, cause: Cause, now: float, *, peer: str | None = None) -> Entered:
        self.since = now
        return Entered(state=self.state, previous=self.previous, cause=cause, peer=peer)

    def _hand_over_ended(self) -> HandOverEnded:
        return HandOverEnded(successor=self.hand_over.successor)

    def _learn(self, received: ReceivedAdvert) -> None:
        # RFC 3768 has one interval for all, and advert_rules drops others; only version 3 learns it.
        if self.settings.version == 3:
            self.active_interval = max(received.interval, SHORTEST_ADVERT)

    def _announce(self) -> AnnounceAddresses:
        return AnnounceAddresses(repeat=self.settings.announce.repeat)
