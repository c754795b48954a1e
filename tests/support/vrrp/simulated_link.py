"""Routers on a link that delays, loses, repeats and reorders, in simulated time.

Each router is a sync group, of one member or more; each member has the link to itself. A router performs its
effects as the program does and objects to any that comes in the wrong order.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count, pairwise
from random import Random
from typing import assert_never

from support.vrrp.elections import packed

from appliance.core.vrrp.election import (
    AnnounceAddresses,
    Effect,
    Election,
    ElectionSettings,
    Entered,
    HandOverEnded,
    Left,
    ReceivedAdvert,
    ReleaseAddresses,
    RouterState,
    SendAdvert,
    SplitBrain,
    TakeAddresses,
    UnexpectedEvent,
)
from appliance.core.vrrp.sync_group import MemberEffect, SyncGroup


@dataclass(kw_only=True)
class Quality:
    """What the link does to each packet: seconds of delay, and probabilities. `lateness` is of wake-ups."""

    shortest: float = 0.0001
    longest: float = 0.001
    loss: float = 0.0
    repeat: float = 0.0
    lateness: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Change:
    """Who holds a member's addresses from a time on."""

    at: float
    holders: frozenset[str]


@dataclass(kw_only=True)
class Router:
    """One machine. `healthy_since` is since when it could have taken over, None while it cannot."""

    name: str
    terms: dict[str, ElectionSettings]
    peers: dict[str, str]
    group: SyncGroup
    held: set[str] = field(default_factory=set)
    inbox: list[tuple[str, ReceivedAdvert]] = field(default_factory=list)
    effects: list[tuple[float, str, Effect]] = field(default_factory=list)
    frozen: bool = False
    alive: bool = True
    ends: bool = False
    gone: bool = False
    healthy: list[tuple[float, bool]] = field(default_factory=list)
    planned: float | None = None
    wake: float = 0.0

    def entered(self) -> list[Entered]:
        """Return the states that were entered."""
        return [effect for _, _, effect in self.effects if isinstance(effect, Entered)]


class Link:
    """Routers by name, and the time. `sent` counts packets."""

    def __init__(self, *, seed: int, quality: Quality) -> None:
        self.now = 0.0
        self.quality = quality
        self.routers: dict[str, Router] = {}
        self.history: dict[str, list[Change]] = {}
        self.sent = 0
        self.cut: set[tuple[str, str]] = set()
        self.cut_members: set[str] = set()
        self._random = Random(seed)  # noqa: S311  # a simulation
        self._order = count()
        self._flying: list[tuple[float, int, str, str, ReceivedAdvert]] = []

    # What happens to routers

    def add(self, name: str, terms: dict[str, ElectionSettings], peers: dict[str, str]) -> Router:
        """Add and start a router; `terms` and its own addresses `peers` are by member."""
        router = Router(name=name, terms=terms, peers=peers, group=_group(terms))
        self.routers[name] = router
        for member in terms:
            self.history.setdefault(member, [Change(at=self.now, holders=frozenset())])
        self._started(router)
        return router

    def kill(self, name: str) -> None:
        """End a router without a word; its addresses go with it."""
        router = self.routers[name]
        router.alive = False
        router.inbox.clear()
        self._unhealthy(router)
        for member in list(router.held):
            self._hold(router, member, holds=False)

    def restart(self, name: str) -> None:
        """Start a router anew that was killed or has left."""
        router = self.routers[name]
        router.group = _group(router.terms)
        router.alive, router.ends, router.gone, router.frozen = True, False, False, False
        self._started(router)

    def freeze(self, name: str) -> None:
        """Stop a router's process: it hears and does nothing, and its addresses stay."""
        self.routers[name].frozen = True
        self._unhealthy(self.routers[name])

    def thaw(self, name: str) -> None:
        """Continue a router's process: it reads its sockets and then does what is due."""
        router = self.routers[name]
        if not router.frozen:
            return
        router.frozen = False
        self._healthy(router)
        waiting, router.inbox = router.inbox, []
        for member, heard in waiting:
            self._hear(router, member, heard)
        self._tick(router)

    def fault(self, name: str, member: str) -> None:
        """Let one member of a router fail."""
        self._unhealthy(self.routers[name])
        self._perform(self.routers[name], self.routers[name].group.fault(member, self.now))

    def recover(self, name: str) -> None:
        """Let a router recover from all faults."""
        router = self.routers[name]
        for member in router.terms:
            self._perform(router, router.group.recover(member, self.now))
        self._healthy(router)

    def set_priority(self, name: str, member: str, priority: int) -> None:
        """Give one member another effective priority."""
        self._perform(self.routers[name], self.routers[name].group.set_priority(member, priority, self.now))

    def leave(self, name: str) -> None:
        """Stop a router."""
        self.routers[name].ends = True
        self._unhealthy(self.routers[name])
        self._perform(self.routers[name], self.routers[name].group.stop(self.now))

    def move(self, name: str) -> None:
        """Hand over on purpose."""
        self._perform(self.routers[name], self.routers[name].group.move(self.now))

    def reclaim(self, name: str) -> None:
        """Take the word back."""
        self._perform(self.routers[name], self.routers[name].group.reclaim(self.now))

    # Time

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end = self.now + seconds
        while (at := self._next()) <= end:
            self.now = max(at, self.now)
            self._step()
        self.now = end

    def _next(self) -> float:
        flying = self._flying[0][0] if self._flying else float("inf")
        wakes = (self._wake(router) for router in self.routers.values() if router.alive and not router.frozen)
        return min(flying, *wakes, float("inf"))

    def _wake(self, router: Router) -> float:
        deadline = router.group.deadline
        if deadline is None:
            return float("inf")
        if deadline != router.planned:
            router.planned = deadline
            router.wake = max(deadline, self.now) + self._random.uniform(0.0, self.quality.lateness)
        return router.wake

    def _step(self) -> None:
        if self._flying and self._flying[0][0] <= self.now:
            _, _, name, member, heard = heapq.heappop(self._flying)
            self._deliver(self.routers[name], member, heard)
            return
        for router in self.routers.values():
            if router.alive and not router.frozen and self._wake(router) <= self.now:
                self._tick(router)

    def _tick(self, router: Router) -> None:
        deadline = router.group.deadline
        if deadline is None or deadline > self.now:
            return
        self._perform(router, router.group.tick(self.now, self.now - deadline))
        after = router.group.deadline
        assert after is None or after > self.now, "a tick leaves nothing due"

    def _deliver(self, router: Router, member: str, heard: ReceivedAdvert) -> None:
        if not router.alive:
            return
        if router.frozen:
            router.inbox.append((member, heard))
            return
        self._hear(router, member, heard)

    def _hear(self, router: Router, member: str, heard: ReceivedAdvert) -> None:
        self._perform(router, router.group.receive(member, heard, self.now))

    # What routers do

    def _perform(self, router: Router, effects: Iterable[MemberEffect]) -> None:
        for member, effect in effects:
            assert not router.gone or isinstance(effect, Entered | Left | SendAdvert | ReleaseAddresses)
            router.effects.append((self.now, member, effect))
            self._do(router, member, effect)
        for member, election in router.group.members.items():
            assert (member in router.held) is (election.state is RouterState.ACTIVE), (
                "held if and only if active"
            )

    def _do(self, router: Router, member: str, effect: Effect) -> None:
        match effect:
            case TakeAddresses():
                assert member not in router.held
                self._hold(router, member, holds=True)
            case ReleaseAddresses():
                assert member in router.held
                self._hold(router, member, holds=False)
            case SendAdvert(priority=priority):
                assert member in router.held, "only what is held is advertised"
                self._send(router, member, priority)
            case AnnounceAddresses() | SplitBrain():
                assert isinstance(effect, SplitBrain) or member in router.held
            case Entered(state=state, previous=previous):
                assert state is not previous
                assert (member in router.held) is (state is RouterState.ACTIVE)
            case Left():
                assert member not in router.held
                router.gone = True
            case HandOverEnded():
                pass
            case UnexpectedEvent():
                raise AssertionError(f"{router.name}, {member}: {effect}")
            case _:
                assert_never(effect)

    def _hold(self, router: Router, member: str, *, holds: bool) -> None:
        if holds:
            router.held.add(member)
        else:
            router.held.discard(member)
        holders = frozenset(each.name for each in self.routers.values() if member in each.held)
        self.history[member].append(Change(at=self.now, holders=holders))

    def _send(self, router: Router, member: str, priority: int) -> None:
        self.sent += 1
        terms = router.terms[member]
        peer = router.peers[member]
        heard = ReceivedAdvert(priority=priority, interval=terms.advert, sender=packed(peer), peer=peer)
        for other in self.routers.values():
            if other is not router and (router.name, other.name) not in self.cut:
                self._fly(other.name, member, heard)

    def _fly(self, name: str, member: str, heard: ReceivedAdvert) -> None:
        quality = self.quality
        if member in self.cut_members or self._random.random() < quality.loss:
            return
        copies = 2 if self._random.random() < quality.repeat else 1
        for _ in range(copies):
            at = self.now + self._random.uniform(quality.shortest, quality.longest)
            heapq.heappush(self._flying, (at, next(self._order), name, member, heard))

    # Health, for what may be asked of routers

    def _started(self, router: Router) -> None:
        self._perform(router, router.group.start(self.now))
        self._healthy(router)

    def _healthy(self, router: Router) -> None:
        if (
            router.alive
            and not router.ends
            and not router.frozen
            and router.group.state is not RouterState.FAULT
        ):
            router.healthy.append((self.now, True))

    def _unhealthy(self, router: Router) -> None:
        router.healthy.append((self.now, False))

    # What is asked of them

    def holders(self, member: str) -> frozenset[str]:
        """Return who holds a member's addresses now."""
        return self.history[member][-1].holders

    def spans(self, member: str, *, since: float = 0.0) -> Iterator[tuple[float, float, frozenset[str]]]:
        """Yield begin, end and holders of each span of time that is no instant."""
        changes = [*self.history[member], Change(at=self.now, holders=frozenset())]
        lasting = [before for before, after in pairwise(changes) if after.at > before.at]
        begin, holders = 0.0, frozenset[str]()
        for change in [*lasting, Change(at=self.now, holders=frozenset({""}))]:
            if change.holders != holders:
                if change.at > max(begin, since):
                    yield max(begin, since), change.at, holders
                begin, holders = change.at, change.holders

    def longest_gap(self, member: str) -> float:
        """Return the longest time for which nobody held the addresses while one router could have."""
        gaps = list(_gaps(self.spans(member)))
        return max(
            (
                min(end, stop) - max(begin, start)
                for begin, end in gaps
                for router in self.routers.values()
                for start, stop in _stretches(router.healthy, self.now)
            ),
            default=0.0,
        )


def _group(terms: dict[str, ElectionSettings]) -> SyncGroup:
    return SyncGroup({member: Election(each) for member, each in terms.items()})


def _gaps(spans: Iterator[tuple[float, float, frozenset[str]]]) -> Iterator[tuple[float, float]]:
    for begin, end, holders in spans:
        if not holders:
            yield begin, end


def _stretches(health: list[tuple[float, bool]], now: float) -> Iterator[tuple[float, float]]:
    begin: float | None = None
    for at, healthy in health:
        if healthy and begin is None:
            begin = at
        elif not healthy and begin is not None:
            yield begin, at
            begin = None
    if begin is not None:
        yield begin, now
