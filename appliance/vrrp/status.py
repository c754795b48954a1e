"""What `vrrp` says of its virtual routers: for `status`, and for its board."""

import time
from dataclasses import asdict

from appliance.core.vrrp.election import RouterState
from appliance.vrrp.instance.vrrp_instance import VrrpInstance
from appliance.vrrp.router_group import RouterGroup
from appliance.wire.boards.vrrp_board import RouterRecord
from appliance.wire.lines.vrrp_takeover import KnownRouter, KnownTrack


def described(group: RouterGroup, instance: VrrpInstance, *, now: float) -> dict[str, object]:
    """Return one virtual router as `status` shows it; times that begin with a moment are Unix seconds."""
    router, election, counters = instance.router, instance.election, instance.counters
    deadline = group.sync.deadline
    return {
        "name": router.name,
        "interface": router.interface,
        "family": router.family,
        "version": router.version,
        "router_id": router.router_id,
        "state": election.state.value,
        "since": counters.since,
        "priority": election.priority,
        "base": router.priority,
        "parts": [asdict(part) for part in instance.priority.parts],
        "fault_reasons": list(instance.reasons.values()),
        "addresses": list(router.addresses),
        "held": instance.holder.held,
        "source": instance.source,
        "peers": list(router.peers),
        "heard": _heard(instance, now=now),
        "timers": {
            "advert": router.advert,
            "deadline_in": None if deadline is None else round(deadline - now, 6),
            "active_interval": election.active_interval,
            "skew": election.skew_time,
            "down_interval": election.active_down_interval,
        },
        "transitions": [
            {
                "at": each.at,
                "state": each.entered.state.value,
                "previous": each.entered.previous.value,
                "cause": each.entered.cause.value,
                "peer": each.entered.peer,
            }
            for each in counters.transitions
        ],
        "conflicts": _conflicts(instance, now=now),
        "yielded": election.yielded,
        "leaving": election.handing_over,
        "sync_group": router.sync_group,
        "counters": {
            "adverts_sent": counters.adverts_sent,
            "adverts_received": counters.adverts_received,
            "priority_zero_sent": counters.priority_zero_sent,
            "priority_zero_received": counters.priority_zero_received,
            "gratuitous_sent": counters.gratuitous_sent,
            "transitions": counters.transition_count,
            "split_brains": counters.split_brains,
            "send_errors": counters.send_errors,
            "restored": counters.restored,
        },
        "drops": {reason.value: count for reason, count in counters.drops.items()},
    }


def _heard(instance: VrrpInstance, *, now: float) -> list[dict[str, object]]:
    """Return the routers that were heard. One that advertises a priority is active, until it was silent."""
    silent_from = now - instance.election.active_down_interval
    return [
        {
            "peer": address,
            "priority": peer.priority,
            "last_heard": peer.last_heard,
            "state": "left" if peer.priority == 0 else "active" if peer.monotonic > silent_from else "silent",
        }
        for address, peer in instance.counters.peers.items()
    ]


def known(instance: VrrpInstance) -> KnownRouter:
    """Return one virtual router as a successor of this program has to know it."""
    election = instance.election
    return KnownRouter(
        name=instance.name,
        router_id=instance.router.router_id,
        active=election.state is RouterState.ACTIVE and not election.handing_over,
        yielded=election.yielded,
        tracks=tuple(
            KnownTrack(name=name, up=result.up, value=result.value, detail=result.detail)
            for name, result in instance.results.items()
        ),
    )


def record(instance: VrrpInstance) -> RouterRecord:
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
    )


def _conflicts(instance: VrrpInstance, *, now: float) -> list[dict[str, object]]:
    wall = time.time() - now
    return [
        {
            "kind": each.kind.value,
            "peer": each.peer,
            "detail": each.detail,
            "first_heard": wall + each.first_heard,
            "last_heard": wall + each.last_heard,
            "obeyed": each.obeyed,
        }
        for each in instance.conflict_watch.conflicts.present(now)
    ]
