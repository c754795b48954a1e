"""From the keys of a virtual IP to the virtual router: versions, router ids and timers that were left out."""

from collections.abc import Iterator
from typing import Final, Literal

from appliance.model.addresses import literal
from appliance.model.router_ids import derived
from appliance.model.virtual_ips import Announcing, VirtualIp
from appliance.model.virtual_ips import Hmac as HmacSettings
from appliance.model.virtual_ips import Notify as NotifySettings
from appliance.model.virtual_ips import Track as TrackSettings
from appliance.model.virtual_router import Announce, Hmac, HmacKey, Notify, Track, TrackKind, VirtualRouter

LONGEST_HAND_OVER: Final = 30.0
"""Seconds that a hand-over takes at most where nothing is said, however rare the advertisements are."""

SHORTEST_TIME_WINDOW: Final = 5.0
"""Seconds that the clocks of two routers may differ at least (keepalived's default)."""


def virtual_router(name: str, given: VirtualIp, *, cluster: str | None) -> VirtualRouter:
    """Return the virtual router of a virtual IP that holds together."""
    settled = version(given)
    auth = given.auth
    return VirtualRouter(
        name=name,
        interface=given.interface,
        family=family(given.addresses[0].partition("/")[0]),
        addresses=given.addresses,
        version=settled,
        router_id=router_id(name, given, cluster=cluster),
        priority=given.priority,
        advert=given.advert,
        peers=given.peers,
        source=given.source,
        min_ttl=given.min_ttl,
        password=auth.password if auth else None,
        hmac=_hmac(auth.hmac, advert=given.advert) if auth and auth.hmac else None,
        checksum=given.checksum,
        preempt=given.preempt,
        preempt_delay=given.preempt_delay,
        down_timer_adverts=given.down_timer_adverts,
        listen=_down_interval(given, settled) if given.listen is None else given.listen,
        hand_over=_hand_over(given, settled) if given.hand_over is None else given.hand_over,
        on_conflict=given.on_conflict,
        sync_group=given.sync_group,
        virtual_mac=given.virtual_mac,
        label=given.label,
        announce=_announce(given.announce),
        track=tuple(_track(each, track) for each, track in given.track.items()),
        notify=_notify(given.notify),
    )


def family(address: str) -> Literal[4, 6]:
    """Return the family of a literal address without prefix length."""
    found = literal(address)
    return 6 if found is not None and found.version == 6 else 4


def version(given: VirtualIp) -> Literal[2, 3]:
    """Return the version that is spoken: keepalived's defaults, 2 for IPv4 and 3 for IPv6."""
    if given.version is None:
        return 3 if family(given.addresses[0].partition("/")[0]) == 6 else 2
    return 2 if given.version == 2 else 3


def router_id(name: str, given: VirtualIp, *, cluster: str | None) -> int:
    """Return the router id that is given or derives from the names; 0 where it cannot be derived."""
    return given.router_id or derived(name, cluster=cluster) or 0


def watched(given: TrackSettings) -> Iterator[tuple[TrackKind, tuple[str, ...]]]:
    """Yield what a track says is watched, with its target and further words."""
    for kind in TrackKind:
        match getattr(given, kind.value):
            case None:
                continue
            case tuple() as words:
                yield kind, words
            case target:
                yield kind, (str(target),)


def _down_interval(given: VirtualIp, settled: int) -> float:
    """Return RFC 9568 section 6.1's Active_Down_Interval with our own interval."""
    return given.down_timer_adverts * given.advert + (256 - given.priority) / 256 * _skew(given, settled)


def _skew(given: VirtualIp, settled: int) -> float:
    """Return what the skew time is a part of: a second in RFC 3768, the interval in RFC 9568."""
    return 1.0 if settled == 2 else given.advert


def _hand_over(given: VirtualIp, settled: int) -> float:
    """Return time enough for a successor's skew, its first advertisement, and a second of delay."""
    return min(_skew(given, settled) + given.advert + 1.0, LONGEST_HAND_OVER)


def _hmac(given: HmacSettings, *, advert: float) -> Hmac:
    keys = tuple(HmacKey(id=int(each), secret=secret) for each, secret in given.keys.items())
    window = max(3 * advert, SHORTEST_TIME_WINDOW) if given.time_window is None else given.time_window
    return Hmac(keys=keys, send=given.send or keys[0].id, mode=given.mode, time_window=window)


def _announce(given: Announcing) -> Announce:
    return Announce(
        repeat=given.repeat,
        delay=given.delay,
        refresh=given.refresh,
        refresh_repeat=given.refresh_repeat,
        reply=given.reply,
    )


def _track(name: str, given: TrackSettings) -> Track:
    kind, (target, *arguments) = next(watched(given))
    return Track(
        name=name,
        kind=kind,
        target=target,
        arguments=tuple(arguments),
        weight=given.weight,
        interval=given.interval,
        timeout=given.interval if given.timeout is None else given.timeout,
        rise=given.rise,
        fall=given.fall,
        user=given.user,
        verify=given.verify,
        expect=given.expect,
    )


def _notify(given: NotifySettings) -> Notify:
    return Notify(
        active=given.active or (),
        backup=given.backup or (),
        fault=given.fault or (),
        stop=given.stop or (),
        any=given.any or (),
        user=given.user,
        timeout=given.timeout,
    )
