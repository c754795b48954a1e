"""The record of one VRRP instance: counters, dropped packets, last transitions, and peers received from."""

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Final

from appliance.core.vrrp.election import Entered, RouterState
from appliance.model.drop_reasons import DropReason
from appliance.wire.boards.vrrp_board import RouterRecord

_TRANSITIONS: Final = 20
_MOST_SENDERS: Final = 256  # source addresses can be forged, and memory must not grow with them


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """One change of state; `at` is Unix seconds."""

    at: float
    entered: Entered


@dataclass(slots=True, kw_only=True)
class HeardPeer:
    """A router whose adverts arrived: its last priority and time, in Unix seconds and in monotonic ones."""

    priority: int
    last_heard: float
    monotonic: float


@dataclass(slots=True, kw_only=True)
class RouterCounters:
    """Counters of one instance; `last_advert` is when it last sent one, monotonic seconds, 0.0 for never."""

    adverts_sent: int = 0
    adverts_received: int = 0
    priority_zero_sent: int = 0
    priority_zero_received: int = 0
    gratuitous_sent: int = 0
    send_errors: int = 0
    split_brains: int = 0
    restored: int = 0
    last_advert: float = 0.0
    transition_count: int = 0
    became_active: int = 0
    left_active: int = 0
    transitions: deque[Transition] = field(default_factory=lambda: deque(maxlen=_TRANSITIONS))
    drops: Counter[DropReason] = field(default_factory=Counter)
    peers: dict[str, HeardPeer] = field(default_factory=dict)
    _reported: set[tuple[str, str]] = field(default_factory=set)

    def go_on(self, record: RouterRecord) -> None:
        """Begin with the counts of an earlier run, from its board."""
        self.adverts_sent = record.adverts_sent
        self.adverts_received = record.adverts_received
        self.priority_zero_sent = record.priority_zero_sent
        self.priority_zero_received = record.priority_zero_received
        self.gratuitous_sent = record.gratuitous_sent
        self.transition_count = record.transitions
        self.became_active = record.became_active
        self.left_active = record.left_active
        self.split_brains = record.split_brains
        self.send_errors = record.send_errors
        self.restored = record.restored
        self.drops = Counter({reason: count for reason, count in record.drops.items() if count})

    def sent(self, priority: int, *, now: float) -> None:
        """Count an advertisement that was sent."""
        self.adverts_sent += 1
        self.last_advert = now
        if priority == 0:
            self.priority_zero_sent += 1

    def heard(self, peer: str, priority: int, *, now: float, wall: float) -> None:
        """Count an advertisement that was received, and remember its sender."""
        self.adverts_received += 1
        if priority == 0:
            self.priority_zero_received += 1
        known = self.peers.pop(peer, None)
        if known is None:
            known = HeardPeer(priority=priority, last_heard=wall, monotonic=now)
        known.priority, known.last_heard, known.monotonic = priority, wall, now
        self.peers[peer] = known  # moved to the end: the first entry is the least recently received
        if len(self.peers) > _MOST_SENDERS:
            del self.peers[next(iter(self.peers))]

    def dropped(self, reason: DropReason, peer: str) -> bool:
        """Count a dropped packet; return True for this peer's first of this reason, which is logged."""
        self.drops[reason] += 1
        return self.first(reason, peer)

    def first(self, what: str, who: str) -> bool:
        """Return whether `what` of `who` is new, so that it is logged once."""
        if (what, who) in self._reported or len(self._reported) >= _MOST_SENDERS:
            return False
        self._reported.add((what, who))
        return True

    def entered(self, entered: Entered, *, wall: float) -> None:
        """Count a transition, and keep it with the last ones."""
        self.transition_count += 1
        self.became_active += entered.state is RouterState.ACTIVE
        self.left_active += entered.previous is RouterState.ACTIVE
        self.transitions.append(Transition(at=wall, entered=entered))

    @property
    def since(self) -> float:
        """Return when the present state was entered, Unix seconds, 0.0 before the first."""
        return self.transitions[-1].at if self.transitions else 0.0

    @property
    def state(self) -> RouterState:
        """Return the present state."""
        return self.transitions[-1].entered.state if self.transitions else RouterState.INITIALIZE
