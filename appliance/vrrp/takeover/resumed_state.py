"""What a starting `vrrp` takes on from the one before it, which lives still or has left its board.

A living one says it. A board says who was active and when it advertised last: after a crash that is enough
where the peers have not noticed yet.
"""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from structlog.typing import FilteringBoundLogger

from appliance.core.tracking.priority import TrackResult
from appliance.core.vrrp.election import RouterState
from appliance.net.netlink.addresses import Addresses, HeldAddress
from appliance.vrrp.instance.vrrp_instance import VrrpInstance
from appliance.vrrp.takeover.predecessor import Predecessor, PredecessorError, PredecessorLeavingError
from appliance.wire.boards.vrrp_board import RouterRecord, VrrpBoard
from appliance.wire.lines.vrrp_takeover import KnownRouter


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRun:
    """What was found: the board, None for a first start, and who still serves, None for nobody."""

    board: VrrpBoard | None
    predecessor: Predecessor | None


class ResumedState:
    """What the instances of this start take on of an earlier life."""

    def __init__(self, addresses: Addresses, before: EarlierRun, log: FilteringBoundLogger) -> None:
        routers = before.board.routers if before.board else ()
        self._addresses = addresses
        self._last: Mapping[str, RouterRecord] = {each.name: each for each in routers}
        self._predecessor = before.predecessor
        self._log = log
        self._known: Mapping[str, KnownRouter] | None = None
        self._left: Collection[HeldAddress] | None = None

    def resumes(self, instance: VrrpInstance) -> bool:
        """Give a instance what is known of it; say whether it goes on as active.

        The first question asks the predecessor: everything that takes its time is to be done before.
        """
        if self._known is None:
            self._known, self._left = self._ask(), self._addresses.leftovers()
        known = self._known.get(instance.name)
        if known is None or known.router_id != instance.router.router_id:
            return self._was_active_just_now(instance) and self._has_addresses(instance)
        instance.inherit(_results(known), yielded=known.yielded)
        return known.active and self._has_addresses(instance)

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

    def _was_active_just_now(self, instance: VrrpInstance) -> bool:
        router, last = instance.router, self._last.get(instance.name)
        if last is None or last.state != RouterState.ACTIVE.value:
            return False
        patience = (router.down_timer_adverts - 1) * router.advert
        return 0 <= time.monotonic() - last.last_advert < patience

    def _has_addresses(self, instance: VrrpInstance) -> bool:
        interface = instance.holder.interface
        there = {
            held.address
            for held in self._left or ()
            if interface is not None and held.index == interface.index
        }
        return there >= set(instance.router.addresses)


def _results(known: KnownRouter) -> dict[str, TrackResult]:
    return {each.name: TrackResult(up=each.up, value=each.value, detail=each.detail) for each in known.tracks}
