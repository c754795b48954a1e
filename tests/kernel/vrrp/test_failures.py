"""What goes wrong with two of ours: killed, stopped, unplugged, cut off; client and addresses tell."""

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from support.network.namespaces import INTERFACE, Node
from support.processes.waiting import wait_until
from support.vrrp.vip_client import VipClient, serve
from support.vrrp.vrrp_field import VIP, VIP6, AddressMonitor, Field, pair
from support.vrrp.vrrp_node import VrrpNode, router

from appliance.model.snapshot.virtual_router import AnnounceSettings, AntiReplay, Hmac, HmacKey, HmacMode
from appliance.net.packets.frames import ARP, FrameSocket
from appliance.wire.ethernet import arp

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "tcpdump", root=True)]

HIGH = router(priority=150)
LOW = router(priority=100)


@pytest.mark.slow("real timers of several routers")
def test_killed_and_not_restarted(ground: Field):
    """After kill -9 the backup serves the client, though the dead one's address is still on its interface."""
    serve(ground.one, ground.two)
    with pair(ground, HIGH, LOW) as (high, low):
        with VipClient(ground.client, VIP) as client:
            client.wait_for_answer_by("one")
            high.kill()
            low.wait_for("active")
            client.wait_for_answer_by("two")
            # The address that was left behind goes when the program starts, and then it takes over again.
            assert ground.one.holds(VIP)
            high.start()
            client.wait_for_answer_by("one")
        ground.wait_for_holder(ground.one)
        assert low.transitions() == ["backup", "active", "backup"]


@pytest.mark.slow("real timers of several routers")
def test_killed_and_restarted_late_as_backup(ground: Field):
    """One that comes back beside who serves meanwhile, and may not preempt, removes what it left behind."""
    with pair(ground, router(priority=150, preempt=False), LOW) as (high, low):
        high.kill()
        low.wait_for("active")
        assert ground.one.holds(VIP)
        high.start()
        ground.wait_for_holder(ground.two)
        high.wait_for("backup")
        assert low.transitions() == ["backup", "active"]


@pytest.mark.slow("real timers of several routers")
def test_killed_and_restarted_at_once(ground: Field):
    """Restarted within its advertisements it goes on: the address never leaves, the peer sees nothing."""
    # Two intervals are what a start may take, on a machine that is busy too.
    high_router, low_router = router(priority=150, advert=3.0), router(priority=100, advert=3.0, listen=0.0)
    serve(ground.one, ground.two)
    with pair(ground, high_router, low_router) as (high, low):
        before = low.transitions()
        with AddressMonitor(ground.one) as monitor, VipClient(ground.client, VIP) as client:
            client.wait_for_answer_by("one")
            begin = client.mark()
            high.kill()
            high.start()
            high.wait_for("active")
            ground.wait_for_adverts(2, source=ground.one.address)
            outage = client.stop().since(begin)
            assert monitor.went(VIP) == 0
        assert outage.answerers == ["one"]
        assert outage.lost == 0
        assert low.transitions() == before
        assert high.transitions() == ["active"]


@pytest.mark.slow("real timers of several routers")
def test_unplugged_and_plugged(ground: Field):
    """Without carrier it is in fault and leaves the address; with it again it takes over."""
    serve(ground.one, ground.two)
    with pair(ground, HIGH, LOW) as (high, _low):
        with VipClient(ground.client, VIP) as client:
            client.wait_for_answer_by("one")
            ground.one.unplug()
            high.wait_for("fault")
            ground.wait_for_holder(ground.two)
            client.wait_for_answer_by("two")
            ground.one.plug()
            client.wait_for_answer_by("one")
        ground.wait_for_holder(ground.one)
        assert high.transitions()[-3:] == ["fault", "backup", "active"]


def test_interface_taken_down_and_up(ground: Field):
    """An interface that the operator takes down is a fault like a pulled cable, in both families."""
    six = router("six", priority=150, router_id=6, addresses=(f"{VIP6}/64",))
    with VrrpNode(ground.one, HIGH, six) as high:
        high.wait_for("active")
        high.wait_for("active", "six")
        ground.one.ip("link", "set", INTERFACE, "down")
        high.wait_for("fault")
        high.wait_for("fault", "six")
        assert not ground.one.holds(VIP)
        ground.one.batch(f"link set {INTERFACE} up", f"address replace fd00::1/64 dev {INTERFACE} nodad")
        ground.wait_for_holder(ground.one)
        ground.wait_for_holder(ground.one, VIP6)


@pytest.mark.slow("real timers of several routers")
def test_interface_deleted_and_made_again(ground: Field):
    """An interface that disappears is a fault; another one of its name is taken as its return."""
    with pair(ground, HIGH, LOW) as (high, _):
        ground.wait_for_holder(ground.one)
        ground.one.ip("link", "delete", INTERFACE)
        high.wait_for("fault")
        ground.wait_for_holder(ground.two)
        port, mac = ground.one.port, ground.one.mac
        ground.segment.batch(
            f"link add {port} type veth peer name {INTERFACE} address {mac} netns {ground.one.name}",
            f"link set {port} master bridge up",
        )
        ground.one.batch(f"link set {INTERFACE} up", f"address add {ground.one.address}/24 dev {INTERFACE}")
        ground.wait_for_holder(ground.one)


@pytest.mark.slow("real timers of several routers")
def test_stopped_for_ten_intervals(ground: Field):
    """One that was not scheduled for ten intervals finds a successor: only one keeps the address."""
    serve(ground.one, ground.two)
    with pair(ground, HIGH, LOW) as (high, low):
        with VipClient(ground.client, VIP) as client:
            client.wait_for_answer_by("one")
            high.pause()
            low.wait_for("active")
            ground.wait_for_adverts(7, source=ground.two.address)
            high.go_on()
            # Better than who serves it may go on at once, and the other one leaves within an interval.
            ground.wait_for_holder(ground.one)
            client.wait_for_answer_by("one")
        assert low.transitions() == ["backup", "active", "backup"]
        wakeups = high.ask("status")["late_wakeups"]
        assert isinstance(wakeups, int)
        assert wakeups > 0


@pytest.mark.slow("real timers of several routers")
def test_worse_one_stopped_for_ten_intervals(ground: Field):
    """An active that was stopped while a better one came leaves the address as soon as it goes on."""
    with VrrpNode(ground.one, LOW) as low:
        low.wait_for("active")
        low.pause()
        with VrrpNode(ground.two, HIGH) as high:
            high.wait_for("active")
            ground.wait_for_adverts(7, source=ground.two.address)
            mark = ground.capture.mark()
            low.go_on()
            ground.wait_for_holder(ground.two)
            ground.wait_for_adverts(5, source=ground.two.address)
            # It had read that there is a better one before it thought of its own advertisements: all that
            # it says is that it was active, so that the better one announces itself once more.
            later = ground.capture.read()[mark:]
            said = [each for each in ground.capture.adverts(source=ground.one.address) if each in later]
            assert len(said) <= 1
            assert [each for each in ground.capture.announcements(mac=ground.two.mac) if each in later]
            assert low.transitions() == ["backup", "active", "backup"]


@pytest.mark.slow("real timers of several routers")
def test_backup_stopped_for_ten_intervals(ground: Field):
    """A backup that was stopped does not claim when it goes on: what it missed is read first."""
    with pair(ground, HIGH, LOW) as (_, low):
        before, mark = low.transitions(), ground.capture.mark()
        low.pause()
        ground.wait_for_adverts(10, source=ground.one.address)
        low.go_on()
        ground.wait_for_adverts(5, source=ground.one.address)
        assert low.transitions() == before
        assert ground.senders(since=mark) == {ground.one.address}


@pytest.mark.slow("real timers of several routers")
def test_both_isolated_and_rejoined(ground: Field):
    """Cut off from each other both serve; joined again one leaves, and the other announces itself again."""
    serve(ground.one, ground.two)
    with pair(ground, HIGH, LOW) as (high, low):
        ground.one.isolate()
        ground.two.isolate()
        low.wait_for("active")
        assert high.state() == "active"
        ground.two.rejoin()
        with VipClient(ground.client, VIP) as client:
            client.wait_for_answer_by("two")
            mark = ground.capture.mark()
            ground.one.rejoin()
            ground.wait_for_holder(ground.one)
            # The client has learnt the loser's MAC: only an announcement moves it.
            client.wait_for_answer_by("one")
        later = ground.capture.read()[mark:]
        assert [each for each in ground.capture.announcements(mac=ground.one.mac) if each in later]
        assert high.transitions() == ["backup", "active"]
        assert low.transitions()[-2:] == ["active", "backup"]
        assert "split-brain" in high.log()
        assert ground.two.address in high.log()


@pytest.mark.slow("real timers of several routers")
@pytest.mark.parametrize("address", [f"{VIP}/24", f"{VIP6}/64"])
def test_deleted_by_hand_comes_back(ground: Field, address: str):
    """A virtual IP that something else removes is there again, announced, without a transition."""
    bare = address.partition("/")[0]
    with VrrpNode(ground.one, router(addresses=(address,))) as ours:
        ours.wait_for("active")
        ground.wait_for_holder(ground.one, bare)
        told = len(ground.capture.announcements(address=bare))
        ground.one.ip("address", "delete", address, "dev", INTERFACE)
        ground.wait_for_holder(ground.one, bare)
        wait_until(
            lambda: len(ground.capture.announcements(address=bare)) > told, what="it is announced again"
        )
        assert ours.transitions() == ["backup", "active"]


@pytest.mark.slow("real timers of several routers")
def test_a_backup_leaves_foreign_addresses_alone(ground: Field):
    """What others have put on the interface stays there, through start, election, stop and start."""
    foreign = "192.0.2.201/24"
    ground.one.ip("address", "add", foreign, "dev", INTERFACE)
    with VrrpNode(ground.one, LOW) as ours:
        ours.wait_for("active")
        ours.stop()
        ours.start()
        ours.wait_for("active")
    assert ground.one.holds(foreign)
    assert ground.one.holds(ground.one.address)


@pytest.mark.promise("docs/virtual-ips.md", "a planned move loses nothing")
def test_a_planned_move_loses_nothing(ground: Field):
    """`move` hands the address over without one lost probe, and it stays there though the other is worse."""
    serve(ground.one, ground.two)
    with pair(ground, HIGH, LOW) as (high, _low):
        with VipClient(ground.client, VIP) as client:
            client.wait_for_answer_by("one")
            begin = client.mark()
            assert high.move()["ok"]
            client.wait_for_answer_by("two")
            ground.wait_for_adverts(5, source=ground.two.address)
            outage = client.stop().since(begin)
        assert outage.answerers == ["one", "two"]
        assert outage.lost == 0
        ground.wait_for_holder(ground.two)
        assert high.status()["yielded"]
        assert high.ask("reclaim", name="api")["ok"]
        ground.wait_for_holder(ground.one)


@pytest.mark.slow("real timers of several routers")
def test_a_stop_loses_nothing(ground: Field):
    """A stop hands over like a move: the old active answers until its successor does."""
    serve(ground.one, ground.two)
    with pair(ground, HIGH, LOW) as (high, _low):
        with VipClient(ground.client, VIP) as client:
            client.wait_for_answer_by("one")
            begin = client.mark()
            assert high.stop() == 0
            client.wait_for_answer_by("two")
            outage = client.stop().since(begin)
        assert outage.answerers == ["one", "two"]
        assert outage.lost == 0


@pytest.mark.slow("real timers of several routers")
def test_one_that_leaves_announces_nothing(ground: Field):
    """Announcements that are due while it hands over are left out: they would call clients back."""
    restless = AnnounceSettings(repeat=5, delay=0.0, refresh=0.005, refresh_repeat=1, reply=False)
    serve(ground.one, ground.two)
    with pair(ground, router(priority=150, announce=restless), LOW) as (high, _):
        ground.wait_for_holder(ground.one)
        with VipClient(ground.client, VIP) as client:
            client.wait_for_answer_by("one")
            assert high.move()["ok"]
            client.wait_for_answer_by("two")
        ground.wait_for_holder(ground.two)
    left = ground.capture.adverts(source=ground.one.address, priority=0)[0]
    told = ground.capture.announcements(mac=ground.one.mac)
    assert len(told) > 5
    assert not [each for each in told if each.at > left.at]


def test_a_reload_leaves_the_unchanged_alone(ground: Field):
    """A reload that changes one of three virtual IPs: the other two never leave the interface."""
    routers = [
        router(f"ip{number}", router_id=number, addresses=(f"192.0.2.{100 + number}/24",))
        for number in (1, 2, 3)
    ]
    with VrrpNode(ground.one, *routers) as ours:
        for each in routers:
            ours.wait_for("active", each.name)
        changed = router("ip2", router_id=2, addresses=("192.0.2.112/24",))
        with AddressMonitor(ground.one) as monitor:
            ours.reload(routers[0], changed, routers[2])
            ground.wait_for_holder(ground.one, "192.0.2.112")
            assert not ground.one.holds("192.0.2.102")
            ours.reload(routers[0], routers[2])
            wait_until(lambda: not ground.one.holds("192.0.2.112"), what="the removed one is gone")
            assert (monitor.went("192.0.2.101"), monitor.went("192.0.2.103")) == (0, 0)
            assert (monitor.went("192.0.2.102"), monitor.went("192.0.2.112")) == (1, 1)
        assert ours.transitions("ip1") == ours.transitions("ip3") == ["backup", "active"]


def test_a_peer_that_looks_for_duplicates_has_its_address(ground: Field):
    """An active that asks for its peer never probes: to a peer that starts that is a duplicate (RFC 5227)."""
    asked: list[arp.ArpPacket] = []
    with ground.two.inside():
        ears = FrameSocket(INTERFACE, receive=ARP)

    def asked_often() -> bool:
        heard = (arp.decode(frame) for frame in ears.receive())
        asked.extend(each for each in heard if each.target == ground.two.address)
        return len(asked) >= 6  # the kernel of `one` asks, too, before it sends, but not so often

    peers = (ground.two.address,)
    with ears, VrrpNode(ground.one, router(peers=peers, advert=0.2)) as one:
        one.wait_for("active")
        wait_until(asked_often, what="the peer is asked for", timeout=20.0)
    assert {each.sender for each in asked} == {ground.one.address}


@pytest.mark.needs("tc", root=True)
def test_a_full_queue_delays_an_announcement_and_loses_none(ground: Field):
    """Where the interface takes only some frames at once every address is announced all the same."""
    addresses = tuple(f"192.0.2.{each}/24" for each in range(130, 170))
    announce = AnnounceSettings(repeat=5, delay=60.0, refresh=0.0, refresh_repeat=1, reply=False)
    queue = "tbf rate 800kbit burst 1600 limit 600"
    try:
        ground.one.run(["tc", "qdisc", "add", "dev", INTERFACE, "root", *queue.split()])
    except AssertionError as error:
        pytest.skip(f"no queue that fills up: {error}")
    # Not the capture: tcpdump has no room for so many at once.
    heard = Counter[str]()
    with ground.client.inside():
        ears = FrameSocket(INTERFACE, receive=ARP)

    def all_heard() -> bool:
        heard.update(arp.decode(frame).target for frame in ears.receive())
        return all(heard[each.partition("/")[0]] >= announce.repeat for each in addresses)

    with ears, VrrpNode(ground.one, router(addresses=addresses, announce=announce)) as one:
        one.wait_for("active")
        wait_until(all_heard, what="all have been announced as often as they are to be")
        assert "(dropped 0," not in ground.one.run(["tc", "-s", "qdisc", "show", "dev", INTERFACE])
        assert '"doing": "announce"' not in one.log()


_OTHER_CLOCK = """
import pathlib, runpy, sys, time
real, ahead, last = time.time, pathlib.Path(sys.argv[1]), ["0"]
def now():
    last[0] = ahead.read_text() or last[0]  # while it is written it is empty
    return real() + float(last[0])
time.time = now
runpy.run_module("appliance.programs.vrrp", run_name="__main__")
"""


@pytest.mark.slow("real timers of several routers")
def test_a_wall_clock_that_jumps_moves_nothing(ground: Field, tmp_path: Path):
    """An hour forth and back, as the program's `time.time` sees it, is nothing to active and backup."""
    ahead = tmp_path / "ahead"
    ahead.write_text("0")
    clock = [sys.executable, "-c", _OTHER_CLOCK, str(ahead)]
    # A machine that gives a router no processor for three advertisements would move it, too.
    high, low = router(priority=150, advert=0.5), router(priority=100, advert=0.5)
    with VrrpNode(ground.one, high, through=clock) as one:
        one.wait_for("active")
        with VrrpNode(ground.two, low, through=clock) as two:
            two.wait_for("backup")
            for seconds in ("3600", "-3600", "0"):
                ahead.write_text(seconds)
                ground.wait_for_adverts(4, source=ground.one.address)
            assert (one.transitions(), two.transitions()) == (["backup", "active"], ["backup"])
            ground.wait_for_holder(ground.one)


@pytest.mark.slow("real timers of several routers")
@pytest.mark.parametrize("seconds", ["8", "-8"])
def test_a_clock_that_is_wrong_for_a_while_heals(ground: Field, tmp_path: Path, seconds: str):
    """Signed routers whose clocks part are both active, and named; set right, one leaves and all is well."""
    ahead = tmp_path / "ahead"
    ahead.write_text("0")
    clock = [sys.executable, "-c", _OTHER_CLOCK, str(ahead)]
    key = HmacKey(id=1, secret="00112233445566778899aabbccddeeff" * 2)
    hmac = Hmac(keys=(key,), send=1, mode=HmacMode.ENFORCE, time_window=5.0)
    with pair(ground, replace(HIGH, hmac=hmac), replace(LOW, hmac=hmac)) as (high, low):
        low.close()
        with VrrpNode(ground.two, replace(LOW, hmac=hmac), through=clock) as stepped:
            stepped.wait_for("backup")
            ahead.write_text(seconds)
            stepped.wait_for("active")
            for each in (high, stepped):
                wait_until(
                    lambda each=each: "clock" in str(each.status()["conflicts"]), what="the clock is named"
                )
            ahead.write_text("0")
            stepped.wait_for("backup")
            ground.wait_for_holder(ground.one)
            for each in (high, stepped):
                wait_until(lambda each=each: not each.status()["conflicts"], what="nothing is told any more")
            assert high.transitions() == ["backup", "active"]


@pytest.mark.slow("real timers of several routers")
def test_clocks_that_differ_are_nothing_to_a_growing_sequence(ground: Field, tmp_path: Path):
    """With `anti_replay: monotonic` signed routers whose clocks are a minute apart understand each other."""
    ahead = tmp_path / "ahead"
    ahead.write_text("60")
    clock = [sys.executable, "-c", _OTHER_CLOCK, str(ahead)]
    key = HmacKey(id=1, secret="00112233445566778899aabbccddeeff" * 2)
    hmac = Hmac(keys=(key,), send=1, mode=HmacMode.ENFORCE, time_window=5.0, anti_replay=AntiReplay.MONOTONIC)
    with (
        VrrpNode(ground.one, replace(HIGH, hmac=hmac), through=clock) as high,
        VrrpNode(ground.two, replace(LOW, hmac=hmac)) as low,
    ):
        ground.wait_for_holder(ground.one)
        low.wait_for("backup")
        high.stop()
        ground.wait_for_holder(ground.two)
        assert not low.status()["conflicts"]


def test_an_unrelated_address_opens_nothing_again(ground: Field):
    """One that is added to the interface and removed leaves every socket as it is: adverts go on."""
    with VrrpNode(ground.one, router()) as one:
        one.wait_for("active")
        before = raw_sockets(ground.one)
        for step in ("add", "delete"):
            ground.one.ip("address", step, "198.51.100.1/24", "dev", "eth0")
            ground.one.ip("address", step, "192.0.2.100/32", "dev", "eth0")  # which is told, so it was seen
            wait_until(lambda: bool(one.status()["conflicts"]) is (step == "add"), what=f"{step} is seen")  # noqa: B023
            assert raw_sockets(ground.one) == before
        assert one.transitions() == ["backup", "active"]


@pytest.mark.slow("real timers of several routers")
def test_a_network_that_is_reached_later_brings_no_second_route(ground: Field):
    """A backup whose interface gets an address in its network takes its own without a route."""
    terms = {"addresses": ("198.51.100.100/24",)}
    with pair(ground, router(priority=150, **terms), router(**terms)) as (active, backup):
        ground.two.ip("address", "add", "198.51.100.2/24", "dev", "eth0")
        active.stop()
        backup.wait_for("active")
        shown = ground.two.ip("-o", "address", "show", "dev", "eth0")
        (line,) = (each for each in shown.splitlines() if "198.51.100.100" in each)
        assert "noprefixroute" in line


@pytest.mark.slow("real timers of several routers")
def test_the_address_on_another_interface_is_told(ground: Field):
    """A backup that has the virtual IP on `lo` answers ARP for it and tells it; with arp_ignore neither."""
    with pair(ground, HIGH, LOW) as (_, backup):
        ground.two.ip("address", "add", f"{VIP}/32", "dev", "lo")
        (conflict,) = wait_until(lambda: backup.status()["conflicts"], what="the conflict is told")
        assert (conflict["kind"], conflict["peer"], conflict["detail"]) == (
            "address-foreign",
            "lo",
            f"{VIP}/32",
        )
        ground.two.ip("address", "delete", f"{VIP}/32", "dev", "lo")
        wait_until(lambda: not backup.status()["conflicts"], what="the conflict is over")
        ground.two.run(["sysctl", "-w", "net.ipv4.conf.all.arp_ignore=1"])
        ground.two.ip("address", "add", f"{VIP}/32", "dev", "lo")
        ground.two.ip("address", "add", f"{VIP}/31", "dev", INTERFACE)
        (conflict,) = wait_until(lambda: backup.status()["conflicts"], what="the other one is told")
        assert conflict["peer"] == INTERFACE
        assert backup.state() == "backup"


def raw_sockets(node: Node) -> set[str]:
    """Return the inodes of all raw IPv4 sockets in a node."""
    lines = node.run(["cat", "/proc/net/raw"]).splitlines()[1:]
    return {line.split()[9] for line in lines}
