"""Values for elections: terms, advertisements heard, and the effects that come together."""

from ipaddress import ip_address

from appliance.core.vrrp.election import (
    AnnounceAddresses,
    Cause,
    Effect,
    Election,
    ElectionSettings,
    Entered,
    ReceivedAdvert,
    RouterState,
    SendAdvert,
    TakeAddresses,
)
from appliance.model.snapshot.virtual_router import AnnounceSettings as AnnounceTerms

ANNOUNCE = AnnounceTerms(repeat=5, delay=5.0, refresh=0.0, refresh_repeat=1, reply=False)


def packed(address: str) -> bytes:
    """Return the bytes of an address."""
    return ip_address(address).packed


def terms(**changes: object) -> ElectionSettings:
    """Return terms of keepalived's defaults in version 3, with changes."""
    values: dict[str, object] = {
        "version": 3,
        "router_id": 51,
        "priority": 100,
        "advert": 1.0,
        "preempt": True,
        "preempt_delay": 0.0,
        "down_timer_adverts": 3,
        "own": packed("192.0.2.1"),
        "listen": 0.0,
        "hand_over": 3.0,
        "announce": ANNOUNCE,
    }
    return ElectionSettings(**{**values, **changes})  # type: ignore[arg-type]  # one mapping, many types


def heard(*, priority: int, peer: str = "192.0.2.2", interval: float = 1.0) -> ReceivedAdvert:
    """Return an advertisement of another router, by default one with a greater address."""
    return ReceivedAdvert(priority=priority, interval=interval, sender=packed(peer), peer=peer)


def tick_at(election: Election, *, late: float = 0.0) -> list[Effect]:
    """Tick at the machine's own deadline, or `late` seconds after it."""
    assert election.deadline is not None
    return election.tick(election.deadline + late, late)


def became_active(
    priority: int, cause: Cause, *, peer: str | None = None, previous: RouterState = RouterState.BACKUP
) -> list[Effect]:
    """Return the effects of becoming active."""
    return [
        TakeAddresses(),
        SendAdvert(priority=priority),
        AnnounceAddresses(repeat=5),
        Entered(state=RouterState.ACTIVE, previous=previous, cause=cause, peer=peer),
    ]


def sent(effects: list[Effect]) -> list[int]:
    """Return the priorities that are advertised."""
    return [effect.priority for effect in effects if isinstance(effect, SendAdvert)]
