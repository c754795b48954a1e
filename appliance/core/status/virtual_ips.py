"""Virtual IPs as `appliance status` shows them: what is configured, and what vrrp says of it."""

from appliance.core.status.status import VirtualIpStatus
from appliance.model.snapshot.snapshot import Snapshot
from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.wire.lines.vrrp_status import VrrpStatus


def virtual_ips(snapshot: Snapshot, vrrp: VrrpStatus | None) -> tuple[VirtualIpStatus, ...]:
    """Return every virtual IP of the configuration; without a state where vrrp says nothing of it."""
    return tuple(_virtual_ip(router, vrrp) for router in snapshot.virtual_routers)


def _virtual_ip(router: VirtualRouter, vrrp: VrrpStatus | None) -> VirtualIpStatus:
    said = vrrp.router(router.name) if vrrp else None
    return VirtualIpStatus(
        name=router.name,
        addresses=router.addresses,
        interface=router.interface,
        router_id=router.router_id,
        version=router.version,
        sync_group=router.sync_group,
        state=said.state if said else None,
        since=(said.since or None) if said else None,
        active=said.is_active if said else None,
        active_peer=said.active_peer if said else None,
        priority=said.priority if said else None,
        base=router.priority,
        yielded=said.yielded if said else False,
    )
