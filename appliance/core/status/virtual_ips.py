"""Virtual IPs as `appliance status` shows them: the configuration, and what `vrrp` answers about it."""

from appliance.core.status.status import VirtualIpStatus
from appliance.model.snapshot.snapshot import Snapshot
from appliance.model.snapshot.virtual_router import VirtualRouter
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
