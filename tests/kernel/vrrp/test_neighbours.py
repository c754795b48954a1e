"""Two `vrrp` in one network namespace, which happens when one is tried beside the one that serves."""

import os
import sys
from pathlib import Path

import pytest
from support.network.namespaces import Segment
from support.processes.waiting import wait_until
from support.vrrp.vrrp_field import VIP, AddressMonitor
from support.vrrp.vrrp_node import VrrpNode, router

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", root=True),
    pytest.mark.slow("real timers of several routers"),
]


def test_a_second_one_leaves_the_addresses_of_the_first():
    """One that starts beside a living one says whose address it found, and does not remove it."""
    with Segment() as segment:
        node = segment.node("one")
        with VrrpNode(node, router()) as first, AddressMonitor(node) as monitor:
            first.wait_for("active")
            with VrrpNode(node, router("other", addresses=("192.0.2.101/24",), router_id=43)) as second:
                second.wait_for("active", "other")
                assert "leftover-of-another" in second.log()
                assert monitor.went(VIP) == 0
            assert first.state() == "active"


def test_one_alone_removes_what_a_killed_one_left():
    """Without another one alive, an address that is configured no longer is removed too."""
    with Segment() as segment:
        node = segment.node("one")
        with VrrpNode(node, router()) as first:
            first.wait_for("active")
            first.kill()
            assert node.holds(VIP)
            with VrrpNode(node, router("other", addresses=("192.0.2.101/24",), router_id=43)) as second:
                second.wait_for("active", "other")
                assert not node.holds(VIP)
                assert "leftover-removed" in second.log()


@pytest.mark.parametrize("name", ["vrrp.lock", "vrrp.board.new", "vrrp.control"])
def test_what_stands_in_the_way_is_set_aside(name: str):
    """A directory in the place of one of its files keeps nobody from taking a killed one's place."""
    with Segment() as segment:
        node = segment.node("one")
        with VrrpNode(node, router()) as ours:
            ours.wait_for("active")
            ours.kill()
            obstacle = ours.paths.runtime / name
            obstacle.unlink(missing_ok=True)
            obstacle.mkdir()
            ours.start()
            ours.wait_for("active")
            assert node.holds(VIP)
            assert "Traceback" not in ours.log()


def test_one_that_cannot_start_leaves_no_address():
    """With a runtime directory that cannot be written it removes what a killed one left, and says why."""
    with Segment() as segment:
        node = segment.node("one")
        with VrrpNode(node, router()) as ours:
            ours.wait_for("active")
            ours.kill()
            assert node.holds(VIP)
            ours.start(through=_read_only(ours.paths.runtime))
            wait_until(lambda: not node.holds(VIP), what="the leftover is gone")
            assert ours.exit_status() == 1
            (said,) = [each for each in ours.log().splitlines() if "cannot-start" in each]
            assert str(ours.paths.runtime / "vrrp.lock") in said
            assert "Read-only file system" in said
            assert "Traceback" not in ours.log()


def test_one_that_cannot_start_leaves_the_addresses_of_a_living_one():
    """Where another one lives in the namespace nothing is removed."""
    with Segment() as segment:
        node = segment.node("one")
        with VrrpNode(node, router()) as first, AddressMonitor(node) as monitor:
            first.wait_for("active")
            pid = first.pid
            second = node.start(
                [*_read_only(first.paths.runtime), sys.executable, "-m", "appliance.programs.vrrp"],
                environment={**os.environ, **first.paths.environment()},
            )
            assert second.wait(20) == 1
            assert (first.state(), first.pid) == ("active", pid)
            assert monitor.went(VIP) == 0


def _read_only(directory: Path) -> list[str]:
    """Return the command for which a directory takes no writes."""
    mounts = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", mounts, str(directory)]


@pytest.mark.parametrize("prefix", [24, 32])
def test_an_address_added_by_hand_is_a_conflict_while_it_is_there(prefix: int):
    """A backup whose virtual IP somebody puts on its interface says so until it is gone, and leaves it."""
    with Segment() as segment:
        node, other = segment.node("one"), segment.node("two")
        with VrrpNode(other, router(priority=150)) as active, VrrpNode(node, router()) as ours:
            active.wait_for("active")
            ours.wait_for("backup")
            assert not ours.status()["conflicts"]
            node.ip("address", "add", f"{VIP}/{prefix}", "dev", "eth0")
            wait_until(lambda: ours.status()["conflicts"], what="the conflict is known")
            (found,) = ours.status()["conflicts"]
            said = (found["kind"], found["peer"], found["detail"])
            assert said == ("address-foreign", "eth0", f"{VIP}/{prefix}")
            assert ours.log().count('"kind": "address-foreign"') == 1
            active.stop()
            ours.wait_for("active")
            assert [each["kind"] for each in ours.status()["conflicts"]] == ["address-foreign"]
            node.ip("address", "delete", f"{VIP}/{prefix}", "dev", "eth0")
            wait_until(lambda: not ours.status()["conflicts"], what="the conflict has ended")
            wait_until(lambda: node.holds(f"{VIP}/24"), what="the address is there as its own")
            assert ours.state() == "active"
            node.ip("address", "add", f"{VIP}/25", "dev", "eth0")
            wait_until(lambda: ours.status()["conflicts"], what="the conflict is known while active too")
            assert ours.stop() == 0
            assert node.holds(f"{VIP}/25")


@pytest.mark.parametrize("address", [f"{VIP}/24", "fd00::100/64"])
def test_two_that_cannot_hear_each_other_are_told_by_their_answers(address: str):
    """Under different router ids both hold the address; each names the other one until it is gone."""
    with Segment() as segment:
        one, two = segment.node("one"), segment.node("two")
        first = router(addresses=(address,))
        with VrrpNode(one, first) as ours, VrrpNode(two, router(addresses=(address,), router_id=43)) as other:
            for node in (ours, other):
                node.wait_for("active")
            for node, mac in ((ours, two.mac), (other, one.mac)):
                wait_until(
                    lambda node=node, mac=mac: mac in str(node.status()["conflicts"]),
                    what="the other one is named",
                )
            assert other.stop() == 0
            wait_until(lambda: not ours.status()["conflicts"], what="it is told no more", timeout=40.0)
            assert ours.state() == "active"
