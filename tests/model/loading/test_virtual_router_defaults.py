"""`model.loading.virtual_router_defaults`: what holds where a virtual IP says nothing."""

import pytest

from appliance.model.loading.loading import load
from appliance.model.snapshot.virtual_router import (
    AntiReplay,
    Hmac,
    HmacKey,
    HmacMode,
    Track,
    TrackKind,
    VirtualRouter,
)

pytestmark = pytest.mark.pure

SECRET = "0F" * 32


def _router(keys: str = "", *, address: str = "10.0.0.200/24") -> VirtualRouter:
    text = f'{{ addresses: ["{address}"], interface: eth0, router_id: 7{keys and ", "}{keys} }}'
    loaded = load(f"virtual_ips: {{ api: {text} }}", source="a.yaml", number=1)
    assert loaded.snapshot, loaded.errors
    return loaded.snapshot.virtual_routers[0]


def _track(keys: str) -> Track:
    return _router(f"track: {{ one: {{ {keys} }} }}").track[0]


def test_version_and_timers_of_ipv4_are_keepalived_s():
    """IPv4 speaks version 2: an advert a second, dead after three and the skew, which is part of a second."""
    router = _router()

    assert (router.family, router.version, router.advert, router.priority) == (4, 2, 1.0, 100)
    assert (router.listen, router.hand_over) == (3 + 156 / 256, 3.0)


def test_ipv6_speaks_version_3():
    """IPv6 speaks version 3, whose skew is part of the interval."""
    router = _router("advert: 100ms, priority: 128", address="fd00::200/64")

    assert (router.family, router.version) == (6, 3)
    assert (router.listen, router.hand_over) == (pytest.approx(0.35), pytest.approx(1.2))


def test_a_hand_over_waits_half_a_minute_at_most():
    """However rare the adverts are, a stop ends in bounded time, unless more is asked for."""
    assert (_router("advert: 255s").hand_over, _router("hand_over: 1m").hand_over) == (30.0, 60.0)


def test_no_time_to_listen_can_be_asked_for():
    """`listen: off` claims without listening."""
    assert _router("listen: off").listen == 0.0


def test_the_order_in_the_file_means_nothing():
    """Virtual routers are in the order of their names, so that sorting the file changes nothing."""
    entry = "{ addresses: [10.0.0.%d/24], interface: eth0, router_id: %d }"
    text = f"virtual_ips: {{ b: {entry % (1, 1)}, a: {entry % (2, 2)} }}"
    loaded = load(text, source="a.yaml", number=1)

    assert loaded.snapshot
    assert [each.name for each in loaded.snapshot.virtual_routers] == ["a", "b"]


def test_a_key_alone_signs_within_five_seconds():
    """The only key is the one that signs; clocks may differ by three adverts, at least five seconds."""
    keys = f'version: 3, auth: {{ hmac: {{ keys: {{ 9: "{SECRET}" }} }} }}'
    expected = Hmac(
        keys=(HmacKey(id=9, secret=SECRET.lower()),), send=9, mode=HmacMode.ENFORCE, time_window=5.0
    )

    assert _router(keys).hmac == expected
    slow = _router(f"advert: 3s, {keys}").hmac
    assert slow
    assert slow.time_window == 9.0


def test_hmac_as_it_is_given():
    """Which key signs, how and within what time can be said."""
    keys = f'{{ 1: "{SECRET}", 2: "{SECRET}" }}, send: 2, mode: permissive, time_window: 1s'
    hmac = _router(f"version: 3, auth: {{ hmac: {{ keys: {keys} }} }}").hmac

    assert hmac
    assert (hmac.send, hmac.mode, hmac.time_window) == (2, HmacMode.PERMISSIVE, 1.0)


def test_a_password_is_kept_whole():
    """The snapshot holds what the operator wrote; the wire takes what it has room for."""
    assert _router("auth: { pass: ocp4_api_vip }").password == "ocp4_api_vip"  # noqa: S105  # made up
    assert _router("auth: { pass: £6nj7^5 }").password == "£6nj7^5"  # noqa: S105  # made up


@pytest.mark.parametrize(
    ("keys", "kind", "target", "arguments"),
    [
        ('http: "https://[::1]:6443/readyz?a=1"', TrackKind.HTTP, "https://[::1]:6443/readyz?a=1", ()),
        ('http: "http://localhost"', TrackKind.HTTP, "http://localhost", ()),
        ('tcp: "[::1]:6443"', TrackKind.TCP, "[::1]:6443", ()),
        ("script: /bin/sh -c 'exit 1'", TrackKind.SCRIPT, "/bin/sh", ("-c", "exit 1")),
        ("script: [/bin/sh, -c, exit 1]", TrackKind.SCRIPT, "/bin/sh", ("-c", "exit 1")),
        ("process: crio", TrackKind.PROCESS, "crio", ()),
        ("interface: eth1", TrackKind.INTERFACE, "eth1", ()),
        ("file: /run/number", TrackKind.FILE, "/run/number", ()),
    ],
)
def test_what_is_watched(keys: str, kind: TrackKind, target: str, arguments: tuple[str, ...]):
    """The key says the kind, its value the target; a command is split into words."""
    track = _track(keys)

    assert (track.kind, track.target, track.arguments) == (kind, target, arguments)


def test_a_check_has_the_time_of_its_interval():
    """A check may take as long as it is to the next one, so that checks never overlap."""
    track = _track("process: crio, interval: 2s")

    assert (track.interval, track.timeout, track.rise, track.fall, track.weight) == (2.0, 2.0, 1, 1, None)


def test_notify_commands_are_words():
    """Commands are split as a shell would, or taken as a list; those not given are none."""
    notify = _router("notify: { active: '/bin/tell \"now active\"', any: [/bin/tell, all of it] }").notify

    assert (notify.active, notify.any) == (("/bin/tell", "now active"), ("/bin/tell", "all of it"))
    assert (notify.backup, notify.fault, notify.stop, notify.timeout) == ((), (), (), 30.0)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (SECRET, SECRET.lower()),
        (f"hex:{SECRET}", SECRET.lower()),
        ("correct horse"[:7] * 5, b"correct".hex() * 5),
        (f"ascii:{SECRET}", SECRET.encode().hex()),
    ],
)
def test_a_key_is_written_as_keepalived_does(written: str, expected: str):
    """Hexadecimal digits with or without a word before them, or visible text."""
    hmac = _router(f'auth: {{ hmac: {{ keys: {{ 1: "{written}" }} }} }}').hmac

    assert hmac
    assert hmac.keys == (HmacKey(id=1, secret=expected),)


def test_a_key_may_be_in_a_file():
    """Only the file's path is in what programs read, and a clock need not agree where that is said."""
    hmac = _router("auth: { hmac: { keys: { 1: file:/etc/vrrp.key }, anti_replay: monotonic } }").hmac

    assert hmac
    assert hmac.keys == (HmacKey(id=1, secret="", file="/etc/vrrp.key"),)
    assert hmac.anti_replay is AntiReplay.MONOTONIC


@pytest.mark.parametrize(
    "written", ["hex:00", "short", "x" * 65, "file:relative", "hex:" + "x" * 64, " " * 32]
)
def test_what_is_no_key_is_refused(written: str):
    """Too short, too long, no digits, or no path, and nothing of it is shown."""
    auth = f'auth: {{ hmac: {{ keys: {{ 1: "{written}" }} }} }}'
    text = f"virtual_ips: {{ api: {{ addresses: [10.0.0.1/24], interface: eth0, router_id: 7, {auth} }} }}"
    loaded = load(text, source="a.yaml", number=1)

    (error,) = loaded.errors
    assert error.path == "virtual_ips.api.auth.hmac.keys.1"


def test_excluded_addresses_are_held_and_not_advertised():
    """They come and go with the others, which alone are on the wire."""
    router = _router("excluded: [10.0.0.201/24]")

    assert router.addresses == ("10.0.0.200/24", "10.0.0.201/24")
    assert router.advertised == ("10.0.0.200/24",)


def test_addresses_on_another_interface_are_told_apart():
    """They are advertised with the others; the router's own interface may be named, too."""
    router = _router('excluded: ["10.1.0.9/24 dev eth2"]', address="10.1.0.8/24 dev eth1")
    assert router.addresses == ("10.1.0.8/24", "10.1.0.9/24")
    assert (router.advertised, router.here) == (("10.1.0.8/24",), ())
    assert router.elsewhere == (("10.1.0.8/24", "eth1"), ("10.1.0.9/24", "eth2"))
    assert router.other_interfaces == ("eth1", "eth2")
    router = _router(address="10.0.0.200/24 dev eth0")
    assert (router.here, router.elsewhere) == (("10.0.0.200/24",), ())
    assert _router(address="fd00::1/64 dev eth4").family == 6


def test_excluded_addresses_may_be_of_the_other_family():
    """They are held beside the router's own ones, and change neither its family nor its version."""
    router = _router('excluded: ["fd00::8/64", "fd00::9/64 dev eth2", 10.0.0.202/24]')
    assert (router.family, router.version, router.advertised) == (4, 2, ("10.0.0.200/24",))
    assert router.here == ("10.0.0.200/24", "10.0.0.202/24")
    assert router.elsewhere == (("fd00::8/64", router.interface), ("fd00::9/64", "eth2"))
    router = _router("excluded: [10.0.0.8/24]", address="fd00::1/64")
    assert (router.family, router.here) == (6, ("fd00::1/64",))
    assert router.elsewhere == (("10.0.0.8/24", router.interface),)


def test_announcements_are_refreshed_by_default():
    """Once a minute, as OpenShift's keepalived does."""
    assert _router().announce.refresh == 60.0


def test_a_node_that_comes_back_learns_where_connections_are():
    """With `linger` it takes over from nobody before that is known, for a minute at most."""
    text = "virtual_ips: { api: { addresses: [10.0.0.1/24], interface: eth0, router_id: 1 } }\n"
    key = 'linger: { key: "' + "ab" * 32 + '" }\n'
    alone, lingers = (load(each, source="f", number=1).snapshot for each in (text, text + key))
    assert alone is not None
    assert lingers is not None
    assert lingers.virtual_routers[0].informed_within == 60.0
    assert alone.virtual_routers[0].informed_within == 0.0
