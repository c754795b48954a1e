"""What one virtual router has done: counters, drops, and its last transitions."""

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Final

from appliance.core.vrrp.election import Entered, RouterState
from appliance.model.drop_reasons import DropReason

_KEPT: Final = 20
_MOST_TOLD: Final = 256  # a sender may invent source addresses


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """One change of state; `at` is Unix seconds."""

    at: float
    entered: Entered


@dataclass(slots=True, kw_only=True)
class HeardPeer:
    """A router that was heard: its last priority and when, Unix and monotonic seconds."""

    priority: int
    last_heard: float
    monotonic: float


@dataclass(slots=True, kw_only=True)
class RouterCounters:
    """Counters of one virtual router. `last_advert` is monotonic seconds, 0.0 for never."""

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
    transitions: deque[Transition] = field(default_factory=lambda: deque(maxlen=_KEPT))
    drops: Counter[DropReason] = field(default_factory=Counter)
    peers: dict[str, HeardPeer] = field(default_factory=dict)
    _told: set[tuple[str, str]] = field(default_factory=set)

    def sent(self, priority: int, *, now: float) -> None:
        """Count an advertisement of ours."""
        self.adverts_sent += 1
        self.last_advert = now
        if priority == 0:
            self.priority_zero_sent += 1

    def heard(self, peer: str, priority: int, *, now: float, wall: float) -> None:
        """Count an advertisement of a peer."""
        self.adverts_received += 1
        if priority == 0:
            self.priority_zero_received += 1
        known = self.peers.pop(peer, None)
        if known is None:
            known = HeardPeer(priority=priority, last_heard=wall, monotonic=now)
        known.priority, known.last_heard, known.monotonic = priority, wall, now
        self.peers[peer] = known  # at the end: the first one was heard longest ago
        if len(self.peers) > _MOST_TOLD:
            del self.peers[next(iter(self.peers))]

    def dropped(self, reason: DropReason, peer: str) -> bool:
        """Count a packet that was not used; True for the first of its kind from this peer."""
        self.drops[reason] += 1
        return self.first(reason, peer)

    def first(self, what: str, who: str) -> bool:
        """Say whether this is to be told, which it is once."""
        if (what, who) in self._told or len(self._told) >= _MOST_TOLD:
            return False
        self._told.add((what, who))
        return True

    def entered(self, entered: Entered, *, wall: float) -> None:
        """Keep a transition."""
        self.transition_count += 1
        self.transitions.append(Transition(at=wall, entered=entered))

    @property
    def since(self) -> float:
        """Return when the present state was entered, Unix seconds, 0.0 before the first."""
        return self.transitions[-1].at if self.transitions else 0.0

    @property
    def state(self) -> RouterState:
        """Return the state entered last."""
        return self.transitions[-1].entered.state if self.transitions else RouterState.INITIALIZE
