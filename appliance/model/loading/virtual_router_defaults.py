"""Makes the virtual router of a virtual IP: fills in version, router id and timers that were left out."""

from typing import Final

from appliance.model.config.values.vrrp import DEVICE, KEY_FILE
from appliance.model.config.virtual_ips import HmacSection as HmacSettings
from appliance.model.config.virtual_ips import NotifySection as NotifySettings
from appliance.model.config.virtual_ips import TrackSection as TrackSettings
from appliance.model.config.virtual_ips import VirtualIpSection
from appliance.model.loading.copied import copied
from appliance.model.router_ids import router_id
from appliance.model.snapshot.virtual_router import (
    AnnounceSettings,
    Hmac,
    HmacKey,
    Notify,
    Track,
    TrackKind,
    VirtualRouter,
)

LONGEST_HAND_OVER: Final = 30.0
"""Longest default of `hand_over` in seconds, however long the advertisement interval is."""

INFORMED_WITHIN: Final = 60.0
"""Longest wait, in seconds, of a returning node that does not know what connections there are."""

SHORTEST_TIME_WINDOW: Final = 5.0
"""Shortest default of `time_window` in seconds (keepalived's)."""


def virtual_router(name: str, given: VirtualIpSection, *, cluster: str | None) -> VirtualRouter:
    """Return the virtual router of a virtual IP without errors."""
    auth = given.auth
    addresses, excluded = (
        tuple(each.partition(DEVICE)[0] for each in found) for found in (given.addresses, given.excluded)
    )
    return copied(
        VirtualRouter,
        given,
        name=name,
        family=given.families[0],
        addresses=(*addresses, *excluded),
        excluded=excluded,
        version=given.vrrp_version,
        router_id=router_id(given.router_id, name, cluster=cluster),
        password=auth.password if auth else None,
        hmac=_hmac(auth.hmac, advert=given.advert) if auth and auth.hmac else None,
        listen=_down_interval(given) if given.listen is None else given.listen,
        hand_over=_hand_over(given) if given.hand_over is None else given.hand_over,
        announce=copied(AnnounceSettings, given.announce),
        track=tuple(track(each, section) for each, section in given.track.items()),
        notify=_notify(given.notify),
        informed_within=0.0,  # these two follow from the rest of the configuration
        informers=(),
        routes=tuple(each.on(given.interface) for each in given.routes),
    )


def _down_interval(given: VirtualIpSection) -> float:
    """Return RFC 9568 section 6.1's Active_Down_Interval with our own interval."""
    return given.down_timer_adverts * given.advert + (256 - given.priority) / 256 * given.skew_base


def _hand_over(given: VirtualIpSection) -> float:
    """Return the longest wait for a successor: its skew time, its first advertisement, one second more."""
    return min(given.skew_base + given.advert + 1.0, LONGEST_HAND_OVER)


def _hmac(given: HmacSettings, *, advert: float) -> Hmac:
    keys = tuple(hmac_key(int(each), secret) for each, secret in given.keys.items())
    window = max(3 * advert, SHORTEST_TIME_WINDOW) if given.time_window is None else given.time_window
    return copied(Hmac, given, keys=keys, send=given.send or keys[0].id, time_window=window)


def hmac_key(number: int, secret: str) -> HmacKey:
    """Return a key as configured: the secret itself, or the file that contains it."""
    if secret.startswith(KEY_FILE):
        return HmacKey(id=number, secret="", file=secret.removeprefix(KEY_FILE))
    return HmacKey(id=number, secret=secret)


def track(name: str, given: TrackSettings) -> Track:
    """Return a track without errors."""
    kind, (target, *arguments) = given.watched[0]
    return copied(
        Track,
        given,
        name=name,
        kind=kind,
        target=target,
        arguments=tuple(arguments),
        timeout=given.interval if given.timeout is None else given.timeout,
        exists=None if kind is TrackKind.EXISTS else given.exists,
    )


def _notify(given: NotifySettings) -> Notify:
    return copied(
        Notify,
        given,
        active=given.active or (),
        backup=given.backup or (),
        fault=given.fault or (),
        stop=given.stop or (),
        any=given.any or (),
    )
