"""The state that a starting `vrrp` resumes from an earlier run, which still runs or has left its board.

A running one is asked. A board shows which routers were active and when they last advertised: after a crash
that suffices if the peers have not noticed the silence yet.
"""

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from structlog.typing import FilteringBoundLogger

from appliance.core.tracking.priority import TrackResult
from appliance.core.vrrp.election import Resumption, RouterState
from appliance.net.netlink.virtual_addresses import Addresses, HeldAddress
from appliance.vrrp.instance.vrrp_instance import VrrpInstance
from appliance.vrrp.takeover.predecessor import Predecessor, PredecessorError, PredecessorLeavingError
from appliance.wire.boards.vrrp_board import RouterRecord, VrrpBoard
from appliance.wire.lines.vrrp_takeover import KnownRouter


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRun:
    """The earlier run: its board, None on a first start, and a `vrrp` that still runs, None for none."""

    board: VrrpBoard | None
    predecessor: Predecessor | None


class ResumedState:
    """Gives the instances of this run the state of the earlier run."""

    def __init__(self, addresses: Addresses, before: EarlierRun, log: FilteringBoundLogger) -> None:
        records = before.board.routers if before.board else ()
        self._addresses = addresses
        self._records: Mapping[str, RouterRecord] = {each.name: each for each in records}
        self._predecessor = before.predecessor
        self._log = log

    def resume(self, instances: Iterable[VrrpInstance]) -> Mapping[str, Resumption]:
        """Give instances their earlier state; return, by name, how those continue that are active.

        The predecessor is asked only now, to get as recent an answer as possible: do everything that takes
        time before.
        """
        known, left = self._ask(), self._addresses.leftovers()
        instances = tuple(instances)
        self._count_on(instances)
        now = time.monotonic()  # after the answer, which may have taken time
        found = {each.name: self._resumes(each, known.get(each.name), left, now) for each in instances}
        return {name: how for name, how in found.items() if how}

    def _resumes(
        self,
        instance: VrrpInstance,
        known: KnownRouter | None,
        left: Collection[HeldAddress],
        now: float,
    ) -> Resumption | None:
        """Give one instance its earlier state; return how it continues as active, None if it does not."""
        if known is None or known.router_id != instance.router.router_id:
            crashed = self._was_active_just_now(instance, now) and _has_addresses(instance, left)
            return Resumption.AFTER_CRASH if crashed else None
        instance.resume(_results(known), yielded=known.yielded)
        return Resumption.HANDED_ON if known.active and _has_addresses(instance, left) else None

    def _count_on(self, instances: Iterable[VrrpInstance]) -> None:
        for each in instances:
            if each.name in self._records:
                each.counters.go_on(self._records[each.name])

    def _ask(self) -> Mapping[str, KnownRouter]:
        if self._predecessor is None:
            return {}
        try:
            return {each.name: each for each in self._predecessor.ask()}
        except PredecessorError as error:
            self._predecessor.kill(str(error))
        except PredecessorLeavingError:
            self._log.warning("predecessor-leaves", pid=self._predecessor.pid)
        return {}

    def _was_active_just_now(self, instance: VrrpInstance, now: float) -> bool:
        """Return whether it was active so recently that no peer has claimed yet (RFC 9568 section 6.1)."""
        router, last = instance.router, self._records.get(instance.name)
        if last is None or last.state != RouterState.ACTIVE.value:
            return False
        # One interval is left for this run to send its first advert.
        return 0 <= now - last.last_advert < (router.down_timer_adverts - 1) * router.advert


def _has_addresses(instance: VrrpInstance, left: Collection[HeldAddress]) -> bool:
    """Return whether all addresses of an instance are among those that an earlier run left."""
    interface = instance.holder.interface
    if interface is None or set(instance.router.other_interfaces) - interface.others.keys():
        return False
    there = {(held.index, held.address) for held in left}
    return all(
        (place.index, address) in there
        for place in interface.places(instance.router)
        for address in place.addresses
    )


def _results(known: KnownRouter) -> dict[str, TrackResult]:
    return {each.name: TrackResult(up=each.up, value=each.value, detail=each.detail) for each in known.tracks}
