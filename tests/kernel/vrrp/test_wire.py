"""What comes over the wire that is no peer's advertisement: it is counted and changes nothing."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.processes.waiting import wait_until
from support.vrrp.keepalived import Instance, Keepalived
from support.vrrp.vrrp_field import VIP, Field, pair
from support.vrrp.vrrp_forger import Forger, advert, damaged
from support.vrrp.vrrp_node import VrrpNode, router

from appliance.model.snapshot.virtual_router import Checksum, Hmac, HmacKey, HmacMode

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "keepalived", "tcpdump", root=True)]

_STRANGER = "192.0.2.77"


def _drops(node: VrrpNode) -> dict[str, int]:
    drops = node.status().get("drops", {})
    assert isinstance(drops, dict)
    return {str(reason): int(count) for reason, count in drops.items() if count}


@pytest.mark.slow("real timers of several routers")
def test_damaged_packets_change_nothing(ground: Field):
    """Flipped, cut, lengthened and random packets leave active and backup as they are."""
    with (
        pair(ground, router(priority=150), router(priority=100)) as (active, backup),
        Forger(ground.client) as forger,
    ):
        before = active.transitions(), backup.transitions()
        bodies = list(damaged(advert(source=_STRANGER, priority=254), seed=1))
        for body in bodies:
            forger.send(body, source=_STRANGER)
        # What does not name their virtual router is none of theirs, and not counted.
        counted = sum(1 for body in bodies if len(body) > 1 and body[1] == 42)
        for node in (active, backup):
            wait_until(lambda node=node: sum(_drops(node).values()) == counted, what="all are counted")
        assert {"checksum", "truncated", "trailing", "version"} <= _drops(backup).keys()
        found = backup.status()["conflicts"]
        assert isinstance(found, list)
        assert {each["peer"] for each in found} == {_STRANGER}, "who sends it is named"
        assert "damaged" in {each["kind"] for each in found}
        ground.wait_for_adverts(10, source=ground.one.address)
        assert (active.transitions(), backup.transitions()) == before
        ground.wait_for_holder(ground.one)


_WRONG: dict[str, Callable[[], bytes]] = {
    "type": lambda: advert(source=_STRANGER, kind=2),
    "version": lambda: advert(source=_STRANGER, version=2, interval=1),
    "address-list": lambda: advert(source=_STRANGER, addresses=("192.0.2.99",)),
    "checksum": lambda: advert(source="192.0.2.78"),
}


def test_wrong_packets_are_counted_by_reason(ground: Field):
    """A better advertisement with one wrong field is dropped with its reason, and nobody leaves for it."""
    with VrrpNode(ground.one, router(priority=100)) as ours, Forger(ground.client) as forger:
        ours.wait_for("active")
        for wrong in _WRONG.values():
            forger.send(wrong(), source=_STRANGER)
        forger.send(advert(source=_STRANGER), source=_STRANGER, ttl=254)
        forger.send(advert(source=_STRANGER, router_id=43), source=_STRANGER)
        wait_until(lambda: "hop-limit" in _drops(ours), what="the last one is counted")
        ground.wait_for_adverts(2, source=ground.one.address)
        assert {"type", "version", "checksum", "hop-limit"} <= _drops(ours).keys()
        assert {"address-list", "address-count"} & _drops(ours).keys()
        assert ours.transitions() == ["backup", "active"]


@pytest.mark.parametrize("pseudo_header", [True, False])
def test_both_checksums_are_accepted(ground: Field, *, pseudo_header: bool):
    """A better advertisement over IPv4 counts with RFC 5798's checksum and with RFC 9568's."""
    with VrrpNode(ground.one, router(priority=100)) as ours, Forger(ground.client) as forger:
        ours.wait_for("active")
        forger.send(advert(source=_STRANGER, pseudo_header=pseudo_header), source=_STRANGER)
        wait_until(lambda: ours.transitions()[1:3] == ["active", "backup"], what="ours gave way")


@pytest.mark.slow("real timers of several routers")
def test_the_checksum_that_is_configured_is_sent(ground: Field):
    """Two of ours with different checksums understand each other, each as it was told on the wire."""
    with pair(ground, router(priority=150, checksum=Checksum.MESSAGE), router(priority=100)) as (first, _):
        ground.wait_for_adverts(4, source=ground.one.address)
        first.stop()
        ground.wait_for_holder(ground.two)
        ground.wait_for_adverts(1, source=ground.two.address)
    sent = {(each.source, each.checksum) for each in ground.capture.adverts()}
    assert sent == {(ground.one.address, "message"), (ground.two.address, "pseudo-header")}


def test_another_password_is_a_named_conflict(ground: Field):
    """A keepalived with another password is not obeyed: it is counted, and named as a conflict."""
    with (
        Keepalived(ground.two, Instance(version=2, advert=1, password="theirs", priority=150)) as peer,  # noqa: S106  # what is tested
        VrrpNode(ground.one, router(version=2, advert=1.0, password="ours")) as ours,  # noqa: S106  # the same
    ):
        peer.wait_for("MASTER")
        wait_until(lambda: ours.status().get("conflicts"), what="a conflict is named")
        conflicts = ours.status()["conflicts"]
        assert ground.two.address in str(conflicts)
        assert "authentication" in str(conflicts)
        assert _drops(ours)["password"]


@pytest.mark.slow("real timers of several routers")
@pytest.mark.parametrize(("policy", "state"), [("warn", "active"), ("wait", "backup"), ("refuse", "fault")])
def test_a_foreign_holder_of_the_router_id(ground: Field, policy: str, state: str):
    """A keepalived with our id and another address is named, and what happens is what was configured."""
    foreign = Instance(priority=200, addresses=("192.0.2.99/24",))
    with Keepalived(ground.two, foreign) as peer:
        peer.wait_for("MASTER")
        with VrrpNode(ground.one, router(on_conflict=policy)) as ours:
            wait_until(lambda: ours.status().get("conflicts"), what="a conflict is named")
            ours.wait_for(state)
            assert ground.two.address in str(ours.status()["conflicts"])
            # A keepalived 2.2 that hears an active with other addresses puts its own advertisements off.
            heard = ground.one if state == "active" else ground.two
            ground.wait_for_adverts(6, source=heard.address)
            assert ours.state() == state
            if policy == "wait":
                peer.terminate()
                ours.wait_for("active")


def test_an_address_in_use_is_named(ground: Field):
    """A host that has the virtual IP without VRRP answers our probe, and is named as a conflict."""
    ground.client.ip("address", "add", f"{VIP}/24", "dev", "eth0")
    with VrrpNode(ground.one, router(on_conflict="wait")) as ours:
        wait_until(lambda: ours.status().get("conflicts"), what="a conflict is named")
        assert ground.client.mac in str(ours.status()["conflicts"])
        assert ours.state() == "backup"
        ground.client.ip("address", "delete", f"{VIP}/24", "dev", "eth0")
        ours.wait_for("active")


@pytest.mark.promise("docs/security.md", "signed advertisements keep strangers out")
def test_hmac_keeps_strangers_out(ground: Field):
    """Two of ours with a key trust each other, and an advertisement without its trailer moves nothing."""
    key = HmacKey(id=1, secret="00112233445566778899aabbccddeeff" * 2)
    hmac = Hmac(keys=(key,), send=1, mode=HmacMode.ENFORCE, time_window=5.0)
    with (
        pair(ground, router(priority=150, hmac=hmac), router(priority=100, hmac=hmac)) as (active, backup),
        Forger(ground.client) as forger,
    ):
        for _ in range(10):
            forger.send(advert(source=_STRANGER), source=_STRANGER)
        wait_until(lambda: _drops(active).get("hmac-missing") == 10, what="all are counted")
        ground.wait_for_adverts(4, source=ground.one.address)
        assert active.transitions() == ["backup", "active"]
        assert backup.transitions() == ["backup"]
        active.stop()
        ground.wait_for_holder(ground.two)
    ours = [each for each in ground.capture.adverts() if each.source != _STRANGER]
    assert {len(each.trailer) for each in ours} == {28}
    assert {each.checksum for each in ours} == {"pseudo-header"}


@pytest.mark.slow("real timers of several routers")
def test_what_was_heard_before_a_reload_is_a_replay_after_it(ground: Field):
    """A reload that changes the priority does not make the node forget which signatures it has seen."""
    key = HmacKey(id=1, secret="00112233445566778899aabbccddeeff" * 2)
    hmac = Hmac(keys=(key,), send=1, mode=HmacMode.ENFORCE, time_window=300.0)
    high, low = (router(priority=each, hmac=hmac, advert=0.5) for each in (150, 100))
    with pair(ground, high, low) as (active, backup), Forger(ground.client) as forger:
        ground.wait_for_adverts(2, source=ground.one.address)
        old = ground.capture.adverts(source=ground.one.address)[-1]
        wait_until(lambda: backup.status()["heard"], what="the active is heard")
        active.pause()
        backup.reload(replace(low, priority=90))
        body = advert(source=old.source, priority=150, interval=50) + old.trailer
        forger.send(body, source=old.source)
        wait_until(lambda: _drops(backup).get("hmac-replay"), what="the replay is dropped")
        assert "hmac-digest" not in _drops(backup)
        active.go_on()


_HMAC = Hmac(
    keys=(HmacKey(id=1, secret="00112233445566778899aabbccddeeff" * 2),),
    send=1,
    mode=HmacMode.ENFORCE,
    time_window=5.0,
)


@pytest.mark.slow("real timers of several routers")
def test_version_2_is_signed(ground: Field):
    """Two of ours with a key and keepalived's default version elect one, and all they say is signed."""
    terms = {"version": 2, "advert": 1.0, "hmac": _HMAC}
    with pair(ground, router(priority=150, **terms), router(priority=100, **terms)) as (active, backup):
        wait_until(lambda: backup.status()["heard"], what="the active is heard")
        active.stop()
        ground.wait_for_holder(ground.two)
        ground.wait_for_adverts(1, source=ground.two.address)
        assert not _drops(backup)
    assert {len(each.trailer) for each in ground.capture.adverts()} == {28}
    assert {each.version for each in ground.capture.adverts()} == {2}


@pytest.mark.slow("real timers of several routers")
def test_a_signed_advertisement_of_another_version_is_named(ground: Field):
    """What follows a message of version 2 does not hide that it is the other version."""
    with VrrpNode(ground.one, router(hmac=_HMAC)) as ours, Forger(ground.client) as forger:
        ours.wait_for("active")
        forger.send(advert(source=_STRANGER, version=2, interval=1) + bytes(28), source=_STRANGER)
        wait_until(lambda: ours.status()["conflicts"], what="a conflict is named")
        (found,) = ours.status()["conflicts"]
        assert (found["kind"], found["peer"]) == ("version", _STRANGER)


def test_a_key_comes_from_a_file(ground: Field, tmp_path: Path):
    """Without its file a virtual IP is in fault that says so; when the file is there it takes part."""
    path = tmp_path / "key"
    hmac = replace(_HMAC, keys=(HmacKey(id=1, secret="", file=str(path)),))
    with VrrpNode(ground.one, router(hmac=hmac)) as ours:
        ours.wait_for("fault")
        assert str(path) in str(ours.status()["fault_reasons"])
        path.write_text("hex:" + _HMAC.keys[0].secret + "\n")
        ours.wait_for("active")
        with VrrpNode(ground.two, router(priority=50, hmac=_HMAC)) as other:
            other.wait_for("backup")
            wait_until(lambda: other.status()["heard"], what="it is signed with the same key")


def test_excluded_addresses_move_with_the_others(ground: Field):
    """Beside a keepalived that excludes an address it is held by one of the two, and not on the wire."""
    excluded = "192.0.2.101"
    lines = ("virtual_ipaddress_excluded {", f"{excluded}/24", "}")
    ours = router(priority=150, addresses=(f"{VIP}/24", f"{excluded}/24"), excluded=(f"{excluded}/24",))
    with Keepalived(ground.two, Instance(priority=100, lines=lines)) as peer:
        peer.wait_for("MASTER")
        ground.wait_for_holder(ground.two, excluded)
        with VrrpNode(ground.one, ours) as node:
            node.wait_for("active")
            for address in (VIP, excluded):
                ground.wait_for_holder(ground.one, address)
            wait_until(
                lambda: ground.capture.announcements(mac=ground.one.mac, address=excluded),
                what="it is announced",
            )
            assert not node.status()["conflicts"]
            assert node.stop() == 0
            for address in (VIP, excluded):
                ground.wait_for_holder(ground.two, address)
    assert {each.addresses for each in ground.capture.adverts(source=ground.one.address)} == {(VIP,)}


@pytest.mark.slow("real timers of several routers")
def test_two_of_ours_with_one_id_and_other_peers_are_no_conflict(ground: Field):
    """Unicast routers that share an id and no peer hear each other's peers, which is as it should be."""
    first = router(peers=(ground.two.address,))
    second = router("other", addresses=("192.0.2.101/24",), peers=(ground.client.address,))
    with VrrpNode(ground.one, first, second) as ours:
        ours.wait_for("active")
        with VrrpNode(ground.two, router(peers=(ground.one.address,), priority=150)) as peer:
            peer.wait_for("active")
            ours.wait_for("backup")
            wait_until(
                lambda: ours.status("other")["drops"].get("not-a-peer", 0) > 3, what="the other one hears it"
            )
            assert not ours.status("other")["conflicts"]
            assert not ours.status()["conflicts"]
