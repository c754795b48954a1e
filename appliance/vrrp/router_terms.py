"""What the election is to know of a virtual router."""

from appliance.core.vrrp.election import ElectionSettings
from appliance.model.snapshot.virtual_router import VirtualRouter


def terms(router: VirtualRouter, *, own: bytes) -> ElectionSettings:
    """Return what the election is to know of a router; `own` is its packed source address."""
    return ElectionSettings(
        version=router.version,
        router_id=router.router_id,
        priority=router.priority,
        advert=router.advert,
        preempt=router.preempt,
        preempt_delay=router.preempt_delay,
        down_timer_adverts=router.down_timer_adverts,
        own=own,
        listen=router.listen,
        hand_over=router.hand_over,
        announce=router.announce,
    )
