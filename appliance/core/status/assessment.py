"""From observations of the machine to one status."""

from collections.abc import Iterator

from appliance.core.status.frontends import frontend_statuses
from appliance.core.status.generations import ended_connections, generation_statuses
from appliance.core.status.observations import Observations
from appliance.core.status.pools import pool_statuses
from appliance.core.status.problems import problems
from appliance.core.status.programs import program_statuses
from appliance.core.status.shared_ips import bgp_status, shared_ips
from appliance.core.status.status import (
    RedirectedFrontendStatus,
    Status,
    VirtualIpStatus,
)
from appliance.model.snapshot.snapshot import Snapshot
from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.wire.lines.announce_status import AnnounceStatus
from appliance.wire.lines.discovery_status import DiscoveryStatus
from appliance.wire.lines.linger_status import LingerStatus
from appliance.wire.lines.redirect_status import RedirectStatus
from appliance.wire.lines.status_answer import ReloadStatus
from appliance.wire.lines.vrrp_status import VrrpStatus


def virtual_ips(snapshot: Snapshot, vrrp: VrrpStatus | None) -> tuple[VirtualIpStatus, ...]:
    """Return every virtual IP of the configuration; one that `vrrp` does not report has no state."""
    return tuple(_virtual_ip(router, vrrp) for router in snapshot.virtual_routers)


def _virtual_ip(router: VirtualRouter, vrrp: VrrpStatus | None) -> VirtualIpStatus:
    running = vrrp.router(router.name) if vrrp else None
    return VirtualIpStatus(
        name=router.name,
        addresses=router.addresses,
        interface=router.interface,
        router_id=router.router_id,
        version=router.version,
        sync_group=router.sync_group,
        state=running.state if running else None,
        since=(running.since or None) if running else None,
        active=running.is_active if running else None,
        active_peer=running.active_peer if running else None,
        priority=running.priority if running else None,
        base=router.priority,
        yielded=running.yielded if running else False,
    )


def redirected_frontends(
    snapshot: Snapshot, redirect: RedirectStatus | None
) -> tuple[RedirectedFrontendStatus, ...]:
    """Return every redirect of the configuration; one that `redirect` does not report has no state."""
    return tuple(_redirects(snapshot, redirect))


def _redirects(snapshot: Snapshot, redirect: RedirectStatus | None) -> Iterator[RedirectedFrontendStatus]:
    for group in snapshot.groups:
        for frontend in group.frontends:
            if frontend.redirect is None:
                continue
            name = f"{group.name}/{frontend.name}"
            found = redirect.redirect(name) if redirect else None
            yield RedirectedFrontendStatus(
                name=name,
                sources=tuple(map(str, frontend.redirect.sources)),
                state=found.state if found else None,
                since=(found.since or None) if found else None,
                reason=found.reason if found else None,
            )


def assess(observations: Observations, now: float) -> Status:
    """Return the status at `now`, Unix seconds."""
    snapshot = observations.snapshot if isinstance(observations.snapshot, Snapshot) else None
    programs = tuple(program_statuses(observations, snapshot, now))
    frontends = tuple(frontend_statuses(snapshot, observations)) if snapshot else ()
    pools = pool_statuses(snapshot, observations) if snapshot else ()
    found = problems(observations, programs=programs, frontends=frontends, pools=pools, now=now)
    reload, discovery = observations.answer(ReloadStatus), observations.answer(DiscoveryStatus)
    announce, linger = observations.answer(AnnounceStatus), observations.answer(LingerStatus)
    return Status(
        ok=not found,
        problems=found,
        at=now,
        version=reload.version if reload else None,
        configuration=snapshot.number if snapshot else None,
        source=snapshot.source if snapshot else None,
        cluster=snapshot.cluster if snapshot else None,
        degraded=None if snapshot and snapshot.awaited else observations.degraded,
        supervisor=None if isinstance(observations.supervised, tuple) else str(observations.supervised),
        programs=programs,
        frontends=frontends,
        pools=pools,
        generations=tuple(generation_statuses(observations.workers)),
        ended=ended_connections(observations.workers, observations.ended.values()),
        virtual_ips=virtual_ips(snapshot, observations.answer(VrrpStatus)) if snapshot else (),
        shared_ips=shared_ips(snapshot, announce) if snapshot else (),
        bgp=bgp_status(snapshot.bgp, announce) if snapshot and snapshot.bgp else None,
        redirects=redirected_frontends(snapshot, observations.answer(RedirectStatus)) if snapshot else (),
        discovery=discovery.sources if discovery else (),
        guest=observations.guest,
        set_aside=observations.set_aside,
        left_out=snapshot.left_out if snapshot else (),
        take_overs=observations.take_overs,
        nodes=linger.nodes if linger else (),
        digest=reload.digest if reload else None,
    )
