"""The instances of `vrrp` as its status, its board and a successor show them."""

import time

from appliance.core.vrrp.election import RouterState
from appliance.vrrp.groups.router_group import RouterGroup
from appliance.vrrp.instance.counters import RouterCounters
from appliance.vrrp.instance.vrrp_instance import VrrpInstance
from appliance.wire.boards.vrrp_board import RouterRecord
from appliance.wire.lines.vrrp_status import (
    ConflictStatus,
    HeardRouterStatus,
    RouterStatus,
    TimersStatus,
    TransitionStatus,
)
from appliance.wire.lines.vrrp_takeover import KnownRouter, KnownTrack


def router_status(group: RouterGroup, instance: VrrpInstance, *, now: float) -> RouterStatus:
    """Return one virtual router as the command `status` shows it."""
    router, election, counters = instance.router, instance.election, instance.counters
    return RouterStatus(
        name=router.name,
        interface=router.interface,
        family=router.family,
        version=router.version,
        router_id=router.router_id,
        state=election.state.value,
        since=counters.since,
        priority=election.priority,
        base=router.priority,
        parts=instance.priority.parts,
        fault_reasons=instance.faults.messages,
        addresses=router.addresses,
        held=instance.holder.held,
        source=instance.port.source,
        peers=router.peers,
        heard=_heard(instance, now=now),
        timers=_timers(group, instance, now=now),
        transitions=_transitions(counters),
        conflicts=_conflicts(instance, now=now),
        routes=tuple(map(str, router.routed)),
        route_troubles=instance.holder.routes.troubles,
        yielded=election.yielded,
        leaving=election.handing_over,
        sync_group=router.sync_group,
        counters=_counters(counters),
        drops={reason.value: count for reason, count in counters.drops.items()},
        uninformed_for=round(election.uninformed_for(now), 3),
        awaited=tuple(sorted(election.awaited_informers)),
    )


def takeover_state(instance: VrrpInstance) -> KnownRouter:
    """Return one virtual router as a successor of this program needs it."""
    election = instance.election
    return KnownRouter(
        name=instance.name,
        router_id=instance.router.router_id,
        active=election.state is RouterState.ACTIVE and not election.handing_over,
        yielded=election.yielded,
        tracks=tuple(
            KnownTrack(name=name, up=result.up, value=result.value, detail=result.detail)
            for name, result in instance.tracked.results.items()
        ),
    )


def board_record(instance: VrrpInstance) -> RouterRecord:
    """Return one virtual router as the board shows it."""
    election, counters = instance.election, instance.counters
    active = election.state is RouterState.ACTIVE
    return RouterRecord(
        name=instance.name,
        state=election.state.value,
        priority=election.priority,
        since=counters.since,
        transitions=counters.transition_count,
        adverts_sent=counters.adverts_sent,
        adverts_received=counters.adverts_received,
        priority_zero_sent=counters.priority_zero_sent,
        priority_zero_received=counters.priority_zero_received,
        gratuitous_sent=counters.gratuitous_sent,
        last_advert=counters.last_advert,
        peer="" if active else election.peer or "",
        drops=dict(counters.drops),
        became_active=counters.became_active,
        left_active=counters.left_active,
        split_brains=counters.split_brains,
        send_errors=counters.send_errors,
        restored=counters.restored,
        uninformed=bool(election.awaited_informers),
    )


def _heard(instance: VrrpInstance, *, now: float) -> tuple[HeardRouterStatus, ...]:
    """Return the routers whose adverts arrived. Each that advertises a priority is active until silent."""
    silent_from = now - instance.election.active_down_interval
    return tuple(
        HeardRouterStatus(
            peer=address,
            priority=peer.priority,
            last_heard=peer.last_heard,
            state="left" if peer.priority == 0 else "active" if peer.monotonic > silent_from else "silent",
        )
        for address, peer in instance.counters.peers.items()
    )


def _timers(group: RouterGroup, instance: VrrpInstance, *, now: float) -> TimersStatus:
    election, deadline = instance.election, group.sync.deadline
    return TimersStatus(
        advert=instance.router.advert,
        deadline_in=None if deadline is None else round(deadline - now, 6),
        active_interval=election.active_interval,
        skew=election.skew_time,
        down_interval=election.active_down_interval,
    )


def _transitions(counters: RouterCounters) -> tuple[TransitionStatus, ...]:
    return tuple(
        TransitionStatus(
            at=each.at,
            state=each.entered.state.value,
            previous=each.entered.previous.value,
            cause=each.entered.cause.value,
            peer=each.entered.peer,
        )
        for each in counters.transitions
    )


def _conflicts(instance: VrrpInstance, *, now: float) -> tuple[ConflictStatus, ...]:
    wall = time.time() - now
    return tuple(
        ConflictStatus(
            kind=each.kind.value,
            peer=each.peer,
            detail=each.detail,
            first_heard=wall + each.first_heard,
            last_heard=wall + each.last_heard,
            obeyed=each.obeyed,
        )
        for each in instance.conflict_watch.conflicts.present(now)
    )


def _counters(counters: RouterCounters) -> dict[str, int]:
    return {
        "adverts_sent": counters.adverts_sent,
        "adverts_received": counters.adverts_received,
        "priority_zero_sent": counters.priority_zero_sent,
        "priority_zero_received": counters.priority_zero_received,
        "gratuitous_sent": counters.gratuitous_sent,
        "transitions": counters.transition_count,
        "became_active": counters.became_active,
        "left_active": counters.left_active,
        "split_brains": counters.split_brains,
        "send_errors": counters.send_errors,
        "restored": counters.restored,
    }
