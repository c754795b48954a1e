"""Two of ours on one segment: who has the address, and that nobody else ever has it."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.processes.log_lines import logged
from support.processes.waiting import wait_until
from support.supervisor.appliance import Values
from support.vrrp.vip_client import VipClient, serve
from support.vrrp.vrrp_field import VIP, VIP6, AddressMonitor, Field, agreed, field
from support.vrrp.vrrp_node import VrrpNode, router, track

from appliance.model.snapshot.virtual_router import Hmac, HmacKey, HmacMode, Notify

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nsenter", "tcpdump", root=True)]

ONE, OTHER = "one", "other"
THREE = (
    router("a", addresses=("192.0.2.101/24",), router_id=1),
    router("b", addresses=("192.0.2.102/24",), router_id=2),
    router("c", addresses=("192.0.2.103/24",), router_id=3),
)


@pytest.fixture
def meadow() -> Iterator[Field]:
    """Return two nodes and a client on a segment."""
    with field() as made:
        yield made


def events(node: VrrpNode, name: str) -> list[Values]:
    """Return the lines of one event that a node has logged."""
    return logged(node.log(), name)


@pytest.mark.slow("real timers of several routers")
def test_the_better_one_claims(meadow: Field) -> None:
    """Of two the one of the higher priority is active, the other one hears it."""
    with agreed(meadow) as (one, two):
        meadow.wait_for_holder(meadow.one)
        wait_until(lambda: two.status()["heard"], what="the active is heard")
        assert two.status()["heard"][0]["priority"] == 150
        assert one.status()["held"] is True


@pytest.mark.promise("program", "vrrp")
def test_a_crash_moves_the_address(meadow: Field) -> None:
    """When the active is killed with its machine the other one takes over after its down interval."""
    with agreed(meadow) as (one, two):
        meadow.one.unplug()
        two.wait_for("active")
        assert meadow.two.holds(VIP)
        wait_until(lambda: one.state() == "fault", what="no carrier is a fault")
        assert not meadow.one.holds(VIP)
        meadow.one.plug()
        one.wait_for("active")
        meadow.wait_for_holder(meadow.one)


@pytest.mark.slow("real timers of several routers")
def test_a_stop_leaves_no_gap(meadow: Field) -> None:
    """A stop says priority 0 and keeps the address until the successor is heard."""
    with agreed(meadow) as (one, two):
        assert one.stop() == 0
        assert meadow.holders() == [meadow.two]
        assert two.transitions()[-1] == "active"


@pytest.mark.slow("real timers of several routers")
def test_a_move_hands_over_and_stays(meadow: Field) -> None:
    """A planned hand-over answers when the peer has taken over; it comes back only when it is reclaimed."""
    with agreed(meadow) as (one, _):
        assert one.move() == {"ok": True, "name": "api", "successor": meadow.two.address}
        meadow.wait_for_holder(meadow.two)
        meadow.wait_for_adverts(10, source=meadow.two.address)
        assert meadow.holders() == [meadow.two]
        assert one.status()["yielded"] is True
        assert one.ask("reclaim", name="api") == {"ok": True, "name": "api", "changed": True}
        meadow.wait_for_holder(meadow.one)


def test_a_move_without_a_successor_changes_nothing(meadow: Field) -> None:
    """When nobody takes over in time the answer says so, and the address stays."""
    with VrrpNode(meadow.one, router(hand_over=0.3)) as one:
        one.wait_for("active")
        answer = one.move()
        assert answer["ok"] is False
        assert one.state() == "active"
        assert meadow.one.holds(VIP)
        refused = one.ask("move", name="other")
        assert "no virtual IP" in str(refused["errors"])


@pytest.mark.slow("real timers of several routers")
def test_a_backup_has_nothing_to_move(meadow: Field) -> None:
    """A move is asked of the active."""
    with agreed(meadow) as (_, two):
        assert "not active here" in str(two.move()["errors"])


def test_a_reload_of_one_leaves_the_others(meadow: Field) -> None:
    """A reload that changes, removes or adds a virtual IP does not touch another one's address."""
    a, b, c = THREE
    with VrrpNode(meadow.one, a, b, c) as one:
        for each in THREE:
            one.wait_for("active", each.name)
        with AddressMonitor(meadow.one) as monitor:
            changed = router("b", addresses=("192.0.2.112/24",), router_id=2)
            one.reload(a, changed, c)
            wait_until(
                lambda: meadow.one.holds("192.0.2.112") and not meadow.one.holds("192.0.2.102"),
                what="b changed",
            )
            one.reload(a, changed)
            wait_until(lambda: not meadow.one.holds("192.0.2.103"), what="c is gone")
            one.reload(a, changed, router("d", addresses=("192.0.2.104/24",), router_id=4))
            one.wait_for("active", "d")
            wait_until(lambda: monitor.went("192.0.2.103"), what="the monitor saw c go")
            assert (monitor.went("192.0.2.101"), monitor.came("192.0.2.101")) == (0, 0)
            assert monitor.went("192.0.2.112") == 0
        assert one.transitions("a") == ["backup", "active"]
        assert one.transitions("b") == ["backup", "active"]


def test_parameters_change_without_a_move(meadow: Field) -> None:
    """Another priority, interval or password is taken by the virtual router that runs."""
    with VrrpNode(meadow.one, router(priority=100)) as one, AddressMonitor(meadow.one) as monitor:
        one.wait_for("active")
        one.reload(router(priority=120, advert=0.05))
        wait_until(lambda: one.status()["priority"] == 120, what="the priority is taken")
        meadow.wait_for_adverts(3, priority=120, interval=0.05)
        assert one.transitions() == ["backup", "active"]
        assert monitor.went(VIP) == 0


def test_another_router_id_keeps_the_address(meadow: Field) -> None:
    """An active that gets another router id goes on with its address in place."""
    with VrrpNode(meadow.one, router(router_id=42)) as one, AddressMonitor(meadow.one) as monitor:
        one.wait_for("active")
        one.reload(router(router_id=43))
        meadow.wait_for_adverts(3, router_id=43)
        assert one.state() == "active"
        assert monitor.went(VIP) == 0


def test_the_same_snapshot_twice_and_an_abort_change_nothing(meadow: Field) -> None:
    """Preparing and aborting leaves what runs, and committing again is harmless."""
    with VrrpNode(meadow.one, router()) as one:
        one.wait_for("active")
        proposal = one._propose((router(priority=7),))
        assert one.ask("prepare", snapshot=proposal.number)["changed"] is True
        assert one.ask("abort", snapshot=proposal.number)["ok"] is True
        assert one.status()["priority"] == 100
        assert one.ask("commit", snapshot=1)["ok"] is True
        assert one.ask("prepare", snapshot=99)["ok"] is False
        assert one.transitions() == ["backup", "active"]


@pytest.mark.promise("survives", "vrrp")
def test_killed_and_started_at_once_it_goes_on(meadow: Field) -> None:
    """A restart within the peers' patience keeps the address where it is, and nobody else takes it."""
    patient = {"advert": 1.0, "down_timer_adverts": 10, "listen": 0.5}
    with agreed(meadow, **patient) as (one, two):
        meadow.wait_for_adverts(1, source=meadow.one.address)
        with AddressMonitor(meadow.one) as monitor:
            one.kill()
            one.start()
            one.wait_for("active")
            assert one.transitions() == ["active"]
            assert one.status()["transitions"][0]["cause"] == "resumed"
            assert monitor.went(VIP) == 0
        assert two.state() == "backup"


@pytest.mark.slow("real timers of several routers")
def test_killed_and_started_late_it_removes_what_it_left(meadow: Field) -> None:
    """A restart after the peer has taken over removes the address that the dead one left."""
    with VrrpNode(meadow.one, router(priority=100, preempt=False)) as one, contextlib.ExitStack() as stack:
        one.wait_for("active")
        two = stack.enter_context(VrrpNode(meadow.two, router(priority=90, preempt=False)))
        two.wait_for("backup")
        wait_until(lambda: two.status()["heard"], what="the active is heard")
        one.kill()
        two.wait_for("active")
        assert meadow.one.holds(VIP), "the kernel keeps what the dead one left"
        one.start()
        one.wait_for("backup")
        assert meadow.holders() == [meadow.two]
        assert events(one, "leftover-removed")


def test_what_a_dead_one_left_goes_although_it_is_not_configured_any_more(meadow: Field) -> None:
    """An address of ours that no virtual IP has any more is removed at the start; others' stay."""
    with VrrpNode(meadow.one, router()) as one:
        one.wait_for("active")
        meadow.one.ip("address", "add", "192.0.2.77/24", "dev", "eth0")
        one.kill()
        one.paths.accepted.write_bytes(
            one.paths.accepted.read_bytes().replace(b"192.0.2.100", b"192.0.2.101")
        )
        one.start()
        wait_until(lambda: not meadow.one.holds(VIP), what="the leftover is gone")
        assert meadow.one.holds("192.0.2.77")


@pytest.mark.promise("docs/virtual-ips.md", "a sync group moves together")
def test_both_families_move_together(meadow: Field) -> None:
    """The members of a sync group are active on one node, and a fault of one moves all."""
    members = [
        {"name": "v4", "sync_group": "service"},
        {"name": "v6", "sync_group": "service", "addresses": (f"{VIP6}/64",)},
    ]
    one_s = [router(priority=150, **each) for each in members]
    two_s = [router(priority=100, **each) for each in members]
    with VrrpNode(meadow.one, *one_s) as one, VrrpNode(meadow.two, *two_s) as two:
        for name in ("v4", "v6"):
            one.wait_for("active", name)
            two.wait_for("backup", name)
        meadow.wait_for_holder(meadow.one)
        meadow.wait_for_holder(meadow.one, VIP6)
        assert one.move("v6")["ok"] is True
        meadow.wait_for_holder(meadow.two)
        meadow.wait_for_holder(meadow.two, VIP6)
        two.stop()
        meadow.wait_for_holder(meadow.one)
        meadow.wait_for_holder(meadow.one, VIP6)


def test_a_member_joins_an_active_group(meadow: Field) -> None:
    """A virtual IP that is added to an active sync group is active at once; what was there stays."""
    first = router("v4", sync_group="service")
    with VrrpNode(meadow.one, first) as one:
        one.wait_for("active", "v4")
        with AddressMonitor(meadow.one) as monitor:
            one.reload(first, router("v6", addresses=(f"{VIP6}/64",), sync_group="service"))
            one.wait_for("active", "v6")
            one.reload(first)
            wait_until(lambda: not meadow.one.holds(VIP6), what="the member has left")
            assert monitor.went(VIP) == 0
        assert one.transitions("v4") == ["backup", "active"]


def test_an_address_that_somebody_removes_comes_back(meadow: Field) -> None:
    """An active puts its address back at once, and says so."""
    with VrrpNode(meadow.one, router()) as one:
        one.wait_for("active")
        for count in (1, 2):
            meadow.one.ip("address", "delete", f"{VIP}/24", "dev", "eth0")
            wait_until(lambda: meadow.one.holds(VIP), what="the address is back")
            wait_until(
                lambda count=count: one.status()["counters"]["restored"] == count, what="it was counted"
            )
        assert events(one, "address-restored")


def test_an_interface_that_goes_and_comes_back(meadow: Field) -> None:
    """Without its interface a virtual router is in fault; it recovers on the interface that comes back."""
    with VrrpNode(meadow.one, router()) as one:
        one.wait_for("active")
        meadow.segment.batch(f"link delete {meadow.one.port}")
        one.wait_for("fault")
        assert "does not exist" in str(one.status()["fault_reasons"])
        meadow.segment.batch(
            f"link add {meadow.one.port} type veth peer name eth0 netns {meadow.one.name}",
            f"link set {meadow.one.port} master bridge up",
        )
        meadow.one.batch("link set eth0 up", f"address add {meadow.one.address}/24 dev eth0")
        one.wait_for("active")
        assert meadow.one.holds(VIP)
        meadow.wait_for_adverts(2, source=meadow.one.address)


def test_one_router_s_trouble_is_its_own(meadow: Field) -> None:
    """A virtual IP on an interface that is not there is in fault, and the others serve."""
    with VrrpNode(
        meadow.one, router(), router("lost", interface="eth9", addresses=("192.0.2.111/24",), router_id=9)
    ) as one:
        one.wait_for("active")
        one.wait_for("fault", "lost")


def test_a_source_that_is_not_here_is_a_fault(meadow: Field) -> None:
    """Without the address that it is to send from it does not take part, and with it at once."""
    with VrrpNode(meadow.one, router(source="192.0.2.9", peers=("192.0.2.2",))) as one:
        one.wait_for("fault")
        assert "192.0.2.9" in str(one.status()["fault_reasons"])
        meadow.one.ip("address", "add", "192.0.2.9/24", "dev", "lo")
        one.wait_for("active")
        meadow.wait_for_adverts(2, source="192.0.2.9")


@pytest.mark.slow("real timers of several routers")
def test_unicast_peers_agree(meadow: Field) -> None:
    """Two that know each other's addresses agree without multicast, in both families."""

    def made(node: str, other: str, priority: int) -> list[object]:
        nodes = {"one": meadow.one, "two": meadow.two}
        return [
            router("v4", priority=priority, peers=(nodes[other].address,), source=nodes[node].address),
            router(
                "v6",
                priority=priority,
                addresses=(f"{VIP6}/64",),
                peers=(nodes[other].address6,),
                router_id=43,
            ),
        ]

    with (
        VrrpNode(meadow.one, *made("one", "two", 150)) as one,
        VrrpNode(meadow.two, *made("two", "one", 100)) as two,
    ):
        for name in ("v4", "v6"):
            one.wait_for("active", name)
            two.wait_for("backup", name)
            wait_until(lambda name=name: two.status(name)["heard"], what="the active is heard")
        assert not meadow.capture.adverts(destination="224.0.0.18")


@pytest.mark.slow("real timers of several routers")
def test_version_2_with_a_password(meadow: Field) -> None:
    """Version 2 with a password agrees; another password is a named conflict that is told."""
    terms = {"version": 2, "advert": 1.0}
    with (
        VrrpNode(meadow.one, router(priority=150, password=ONE, **terms)) as one,
        contextlib.ExitStack() as stack,
    ):
        one.wait_for("active")
        other = router(priority=100, password=OTHER, on_conflict="wait", **terms)
        two = stack.enter_context(VrrpNode(meadow.two, other))
        wait_until(lambda: two.status().get("conflicts"), what="the conflict is known")
        assert two.status()["conflicts"][0]["kind"] == "authentication"
        assert two.status()["drops"]["password"] >= 1
        meadow.wait_for_adverts(5, source=meadow.one.address)
        assert two.state() == "backup"
        two.reload(router(priority=100, password=ONE, **terms))
        wait_until(lambda: two.status()["heard"], what="the active is heard")


@pytest.mark.promise("docs/virtual-ips.md", "an address in use is named before the first claim")
def test_an_address_in_use_is_a_conflict(meadow: Field) -> None:
    """An address that answers ARP before the first claim, and is nobody's active, is told and waited for."""
    meadow.client.ip("address", "add", f"{VIP}/24", "dev", "eth0")
    with VrrpNode(meadow.one, router(on_conflict="wait")) as one:
        wait_until(lambda: one.status().get("conflicts"), what="the conflict is known")
        assert one.status()["conflicts"][0]["kind"] == "address-in-use"
        assert one.status()["conflicts"][0]["peer"] == meadow.client.mac
        assert one.state() == "backup"
        meadow.client.ip("address", "delete", f"{VIP}/24", "dev", "eth0")
        one.wait_for("active")
        assert events(one, "address-conflict")


def test_an_address_in_use_is_asked_for_when_the_interface_comes_late(meadow: Field) -> None:
    """One that starts before its interface is up asks for its address once it is."""
    meadow.two.ip("address", "add", f"{VIP}/24", "dev", "eth0")
    meadow.one.unplug()
    with VrrpNode(meadow.one, router(advert=0.5)) as one:
        one.wait_for("fault")
        meadow.one.plug()
        wait_until(lambda: events(one, "address-conflict"), what="the conflict is told")
        assert events(one, "address-conflict")[0]["kind"] == "address-in-use"


def test_an_ipv6_address_in_use_is_a_conflict(meadow: Field) -> None:
    """A neighbour that answers for an IPv6 address is told as well."""
    meadow.client.ip("address", "add", f"{VIP6}/64", "dev", "eth0", "nodad")
    with VrrpNode(meadow.one, router(addresses=(f"{VIP6}/64",), on_conflict="wait")) as one:
        wait_until(lambda: one.status().get("conflicts"), what="the conflict is known")
        assert one.status()["conflicts"][0]["peer"] == meadow.client.mac
        assert one.state() == "backup"


@pytest.mark.slow("real timers of several routers")
@pytest.mark.parametrize("address", [f"{VIP}/24", f"{VIP6}/64"])
def test_a_virtual_mac_moves_with_the_address(meadow: Field, address: str) -> None:
    """With a virtual MAC the address is on an interface of its own, which only the active has up."""
    with agreed(meadow, addresses=(address,), virtual_mac=True) as (one, two):
        family = 6 if ":" in address else 4
        mac = f"00:00:5e:00:0{family // 3}:2a"
        meadow.wait_for_adverts(2, priority=150, mac=mac)
        bare = address.partition("/")[0]
        serve(meadow.one, meadow.two)
        with VipClient(meadow.client, bare) as client:
            client.wait_for_answer_by("one")
            assert mac in meadow.client.ip("neighbour", "show", bare)
            assert one.move()["ok"] is True
            client.wait_for_answer_by("two")
        meadow.wait_for_adverts(2, priority=100, mac=mac)
        assert f"vrrp{family}" in meadow.two.ip("-o", "address", "show", "to", bare)
        assert one.stop() == 0
        assert two.stop() == 0
        assert "vrrp" not in meadow.one.ip("-o", "link") + meadow.two.ip("-o", "link")


@pytest.mark.slow("real timers of several routers")
@pytest.mark.parametrize("address", [f"{VIP}/24", f"{VIP6}/64"])
def test_sealed_advertisements_are_believed(meadow: Field, address: str) -> None:
    """With the same HMAC key two agree; one without the key is not heard."""
    hmac = Hmac(keys=(HmacKey(id=1, secret="00" * 32),), send=1, mode=HmacMode.ENFORCE, time_window=5.0)
    with agreed(meadow, addresses=(address,), hmac=hmac) as (one, two):
        two.reload(router(priority=250, addresses=(address,)))
        wait_until(lambda: one.status()["drops"].get("hmac-missing"), what="the unsealed one is dropped")
        assert one.state() == "active"


def test_a_conflict_may_be_refused(meadow: Field) -> None:
    """With `refuse` a conflict before the first claim is a fault that names it."""
    meadow.client.ip("address", "add", f"{VIP}/24", "dev", "eth0")
    with VrrpNode(meadow.one, router(on_conflict="refuse")) as one:
        one.wait_for("fault")
        assert "address-in-use" in str(one.status()["fault_reasons"])


@pytest.mark.slow("real timers of several routers")
def test_an_active_that_is_there_is_no_conflict(meadow: Field) -> None:
    """Starting beside an active tells no conflict: its answers are as they should be."""
    with VrrpNode(meadow.one, router(priority=150)) as one:
        one.wait_for("active")
        with VrrpNode(meadow.two, router(priority=100, on_conflict="refuse")) as two:
            two.wait_for("backup")
            meadow.wait_for_adverts(6, source=meadow.one.address)
            assert two.state() == "backup"
            assert two.status()["conflicts"] == []


@pytest.mark.promise("program", "tracker")
def test_what_is_tracked_moves_the_address(meadow: Field, tmp_path: Path) -> None:
    """A weight that is lost lets the other one take over, and its return brings the address back."""
    flag = tmp_path / "flag"
    flag.write_text("1")
    tracked = track("file", str(flag), name="flag", weight=100)
    with (
        VrrpNode(meadow.one, router(priority=50, track=(tracked,))) as one,
        VrrpNode(meadow.two, router(priority=100)) as two,
    ):
        two.wait_for("backup")
        one.wait_for("active")
        assert one.status()["priority"] == 150
        # It has claimed nothing with less, before its track had spoken. The capture hears it a little later.
        meadow.wait_for_adverts(1, source=meadow.one.address)
        assert {each.priority for each in meadow.capture.adverts(source=meadow.one.address)} == {150}
        flag.write_text("0")
        two.wait_for("active")
        one.wait_for("backup")
        flag.write_text("1")
        one.wait_for("active")
        meadow.wait_for_holder(meadow.one)


def test_a_fault_hands_over_at_once(meadow: Field, tmp_path: Path) -> None:
    """A track without a weight that fails is a fault that names it, until it is well again."""
    flag = tmp_path / "flag"
    flag.touch()
    check = track("script", "test", arguments=("-e", str(flag)), name="flag", weight=None, timeout=5.0)
    with (
        VrrpNode(meadow.one, router(priority=150, track=(check,))) as one,
        VrrpNode(meadow.two, router(priority=100)) as two,
    ):
        one.wait_for("active")
        two.wait_for("backup")
        flag.unlink()
        one.wait_for("fault")
        assert "flag" in str(one.status()["fault_reasons"])
        two.wait_for("active")
        flag.touch()
        one.wait_for("active")


def test_commands_are_run(meadow: Field, tmp_path: Path) -> None:
    """Notify commands hear of each state with keepalived's words, the stop included."""
    told, active = tmp_path / "told", tmp_path / "active"
    any_state = ("sh", "-c", f'echo "$@" >> {told}', "sh")
    notify = Notify(
        active=("touch", str(active)), backup=(), fault=(), stop=(), any=any_state, user=None, timeout=5.0
    )
    with VrrpNode(meadow.one, router(notify=notify)) as one:
        one.wait_for("active")
        wait_until(active.exists, what="the active command was run")
        one.stop()
        wait_until(lambda: "STOP" in told.read_text(), what="the stop was told")
    assert told.read_text().splitlines() == [
        "INSTANCE api BACKUP 100",
        "INSTANCE api MASTER 100",
        "INSTANCE api STOP 100",
    ]


@pytest.mark.slow("real timers of several routers")
def test_a_paused_active_heals_at_once(meadow: Field) -> None:
    """An active that was stopped for ten intervals and goes on leaves one holder."""
    with VrrpNode(meadow.two, router(priority=150, preempt=False)) as two:
        two.wait_for("active")  # before there is another one, which it would not preempt
        with VrrpNode(meadow.one, router(priority=100)) as one:
            one.wait_for("backup")
            two.pause()
            one.wait_for("active")
            meadow.wait_for_adverts(10, source=meadow.one.address)
            two.go_on()
            meadow.wait_for_holder(meadow.two)
            assert one.state() == "backup"


def test_a_client_loses_nothing_by_a_move(meadow: Field) -> None:
    """Every probe of a client is answered while the address is handed over."""
    with agreed(meadow) as (one, _):
        serve(meadow.one, meadow.two)
        with VipClient(meadow.client, VIP) as client:
            client.wait_for_answer_by("one")
            begun = client.mark()
            assert one.move()["ok"] is True
            client.wait_for_answer_by("two")
            client.wait_for_more(20)
            seen = client.stop().since(begun)
        assert seen.lost == 0
        assert seen.answerers == ["one", "two"]
