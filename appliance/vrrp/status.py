"""What `vrrp` says of its virtual routers: for `status`, and for its board."""

import time
from dataclasses import asdict

from appliance.core.vrrp.election import RouterState
from appliance.vrrp.router_group import RouterGroup
from appliance.vrrp.virtual_router import VrrpInstance
from appliance.wire.boards.vrrp_board import RouterRecord
from appliance.wire.lines.vrrp_takeover import KnownRouter, KnownTrack


def described(group: RouterGroup, participant: VrrpInstance, *, now: float) -> dict[str, object]:
    """Return one virtual router as `status` shows it; times that begin with a moment are Unix seconds."""
    router, election, figures = participant.router, participant.election, participant.figures
    deadline = group.sync.deadline
    return {
        "name": router.name,
        "interface": router.interface,
        "family": router.family,
        "version": router.version,
        "router_id": router.router_id,
        "state": election.state.value,
        "since": figures.since,
        "priority": election.priority,
        "base": router.priority,
        "parts": [asdict(part) for part in participant.priority.parts],
        "fault_reasons": list(participant.reasons.values()),
        "addresses": list(router.addresses),
        "held": participant.holding.held,
        "source": participant.source,
        "peers": list(router.peers),
        "heard": _heard(participant, now=now),
        "timers": {
            "advert": router.advert,
            "deadline_in": None if deadline is None else round(deadline - now, 6),
            "active_interval": election.active_interval,
            "skew": election.skew,
            "down_interval": election.down_interval,
        },
        "transitions": [
            {
                "at": each.at,
                "state": each.entered.state.value,
                "previous": each.entered.previous.value,
                "cause": each.entered.cause.value,
                "peer": each.entered.peer,
            }
            for each in figures.transitions
        ],
        "conflicts": _conflicts(participant, now=now),
        "yielded": election.yielded,
        "leaving": election.leaving,
        "sync_group": router.sync_group,
        "counters": {
            "adverts_sent": figures.adverts_sent,
            "adverts_received": figures.adverts_received,
            "priority_zero_sent": figures.priority_zero_sent,
            "priority_zero_received": figures.priority_zero_received,
            "gratuitous_sent": figures.gratuitous_sent,
            "transitions": figures.transition_count,
            "split_brains": figures.split_brains,
            "send_errors": figures.send_errors,
            "restored": figures.restored,
        },
        "drops": {reason.value: count for reason, count in figures.drops.items()},
    }


def _heard(participant: VrrpInstance, *, now: float) -> list[dict[str, object]]:
    """Return the routers that were heard. One that advertises a priority is active, until it was silent."""
    silent_from = now - participant.election.down_interval
    return [
        {
            "peer": address,
            "priority": peer.priority,
            "last_heard": peer.last_heard,
            "state": "left" if peer.priority == 0 else "active" if peer.monotonic > silent_from else "silent",
        }
        for address, peer in participant.figures.peers.items()
    ]


def known(participant: VrrpInstance) -> KnownRouter:
    """Return one virtual router as a successor of this program has to know it."""
    election = participant.election
    return KnownRouter(
        name=participant.name,
        router_id=participant.router.router_id,
        active=election.state is RouterState.ACTIVE and not election.leaving,
        yielded=election.yielded,
        tracks=tuple(
            KnownTrack(name=name, up=result.up, value=result.value, detail=result.detail)
            for name, result in participant.results.items()
        ),
    )


def record(participant: VrrpInstance) -> RouterRecord:
    """Return one virtual router as the board shows it."""
    election, figures = participant.election, participant.figures
    active = election.state is RouterState.ACTIVE
    return RouterRecord(
        name=participant.name,
        state=election.state.value,
        priority=election.priority,
        since=figures.since,
        transitions=figures.transition_count,
        adverts_sent=figures.adverts_sent,
        adverts_received=figures.adverts_received,
        priority_zero_sent=figures.priority_zero_sent,
        priority_zero_received=figures.priority_zero_received,
        gratuitous_sent=figures.gratuitous_sent,
        last_advert=figures.last_advert,
        peer="" if active else election.peer or "",
        drops=dict(figures.drops),
    )


def _conflicts(participant: VrrpInstance, *, now: float) -> list[dict[str, object]]:
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
        for each in participant.caution.conflicts.present(now)
    ]
