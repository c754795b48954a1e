"""From what was found on the machine to one status."""

from appliance.core.status.frontends import frontend_statuses
from appliance.core.status.generations import ended_connections, generation_statuses
from appliance.core.status.observations import Observations
from appliance.core.status.pools import pool_statuses
from appliance.core.status.problems import problems
from appliance.core.status.programs import program_statuses
from appliance.core.status.redirects import redirected_frontends
from appliance.core.status.status import (
    Status,
)
from appliance.core.status.virtual_ips import virtual_ips
from appliance.model.snapshot.snapshot import Snapshot
from appliance.wire.lines.discovery_status import DiscoveryStatus
from appliance.wire.lines.redirect_status import RedirectStatus
from appliance.wire.lines.status_answer import ReloadStatus
from appliance.wire.lines.vrrp_status import VrrpStatus


def assess(observations: Observations, now: float) -> Status:
    """Return the status at `now`, Unix seconds."""
    snapshot = observations.snapshot if isinstance(observations.snapshot, Snapshot) else None
    programs = tuple(program_statuses(observations, snapshot, now))
    frontends = tuple(frontend_statuses(snapshot, observations)) if snapshot else ()
    pools = pool_statuses(snapshot, observations) if snapshot else ()
    found = problems(observations, programs=programs, frontends=frontends, pools=pools, now=now)
    reload, discovery = observations.answer(ReloadStatus), observations.answer(DiscoveryStatus)
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
        redirects=redirected_frontends(snapshot, observations.answer(RedirectStatus)) if snapshot else (),
        discovery=discovery.sources if discovery else (),
        guest=observations.guest,
        set_aside=observations.set_aside,
        left_out=snapshot.left_out if snapshot else (),
        take_overs=observations.take_overs,
    )
