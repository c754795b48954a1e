"""Whole appliances that share virtual IPs: the operator's commands, reload, and a killed supervisord."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from support.network.namespaces import Node
from support.processes.processes import end, kill
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance
from support.vrrp.vip_client import VipClient, serve
from support.vrrp.vrrp_field import VIP, AddressMonitor, Field

from appliance.net.netlink.address_record import AddressRecord
from appliance.net.netlink.virtual_addresses import Addresses

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "tcpdump", root=True)]

OTHER = "192.0.2.101"


def _config(*, priority: int, advert: str = "100ms") -> dict[str, object]:
    virtual_ip = {
        "interface": "eth0",
        "version": 3,
        "advert": advert,
        "priority": priority,
        "announce": {"repeat": 1},
    }
    return {
        "virtual_ips": {
            "api": {"addresses": [f"{VIP}/24"], "router_id": 42, **virtual_ip},
            "ingress": {"addresses": [f"{OTHER}/24"], "router_id": 43, **virtual_ip},
        }
    }


@contextmanager
def _appliance(node: Node, config: dict[str, object]) -> Iterator[Appliance]:
    with ExitStack() as stack:
        with node.inside():
            running = stack.enter_context(Appliance(config))
        yield running


def _kill_all(appliance: Appliance) -> None:
    """Kill everything of it, as a machine's OOM killer or an operator does."""
    kill(appliance.pid)
    for pid in appliance.processes():
        kill(pid)
    appliance.remove_sockets()


def _state(appliance: Appliance, name: str = "api") -> str:
    shown = {each["name"]: each for each in appliance.ask("vrrp", "status")["routers"]}
    return str(shown[name]["state"])


@pytest.mark.slow("real timers of several routers")
def test_a_planned_move_and_back(ground: Field):
    """`vip move` hands one virtual IP over, which stays there until `vip reclaim`; status sees no problem."""
    with (
        _appliance(ground.one, _config(priority=150)) as one,
        _appliance(ground.two, _config(priority=100)) as two,
    ):
        ground.wait_for_holder(ground.one)
        wait_until(lambda: _state(two) == "backup", what="the other one is backup")
        assert ground.two.address in one.command("vip", "move", "api").stdout
        ground.wait_for_holder(ground.two)
        assert ground.holders(OTHER) == [ground.one]
        assert (
            "takes part again with `appliance vip reclaim api`" in one.command("vip", "status", "api").stdout
        )
        assert one.command("vip", "move", "api", check=False).returncode == 1
        for each in (one, two):
            wait_until(lambda each=each: each.status()["ok"], what="nothing is wrong")
        shown = {each["name"]: each for each in one.status()["virtual_ips"]}
        assert (shown["api"]["active_peer"], shown["ingress"]["active"]) == (ground.two.address, True)
        one.command("vip", "reclaim", "api")
        ground.wait_for_holder(ground.one)


@pytest.mark.slow("real timers of several routers")
def test_a_move_without_anybody_changes_nothing(ground: Field):
    """Alone, the answer is no, and the address stays where it is."""
    with _appliance(ground.one, _config(priority=150)) as one:
        ground.wait_for_holder(ground.one)
        with AddressMonitor(ground.one) as monitor:
            done = one.command("vip", "move", "api", check=False)
            assert done.returncode == 1
            assert monitor.went(VIP) == 0
        assert _state(one) == "active"


@pytest.mark.slow("real timers of several routers")
def test_a_reload_of_one_leaves_the_other(ground: Field):
    """A virtual IP that goes by a reload goes alone; without any, vrrp stops and leaves no address."""
    with _appliance(ground.one, _config(priority=150)) as one, AddressMonitor(ground.one) as monitor:
        ground.wait_for_holder(ground.one)
        ground.wait_for_holder(ground.one, OTHER)
        left = _config(priority=150)
        del left["virtual_ips"]["ingress"]
        assert one.reload(left)["changed"] == ["virtual_ips.ingress"]
        wait_until(lambda: not ground.holders(OTHER), what="the address that was removed is gone")
        assert monitor.went(VIP) == 0
        assert one.reload({"defaults": {"drain": "1s"}})["ok"]
        wait_until(lambda: not ground.holders(), what="no address is left")


@pytest.mark.slow("real timers of several routers")
def test_an_address_left_by_a_kill_goes_with_the_next_start(ground: Field):
    """Everything is killed, and the next start has no virtual IP: the address that was left is removed."""
    foreign = "192.0.2.77/24"
    with _appliance(ground.one, _config(priority=150)) as one:
        ground.wait_for_holder(ground.one)
        ground.one.ip("address", "add", foreign, "dev", "eth0")
        _kill_all(one)
        assert ground.holders() == [ground.one]
        one.config = {"defaults": {"drain": "1s"}}
        one.write(one.config)
        with ground.one.inside():
            one.start()
        assert not ground.holders()
        assert ground.one.holds(foreign)
        assert {each["address"] for each in one.events("leftover-removed")} == {f"{VIP}/24", f"{OTHER}/24"}


@pytest.mark.slow("real timers of several routers")
def test_what_may_not_be_removed_at_the_start_is_told(ground: Field):
    """Without the capability the start goes on and warns once of what stays."""
    with _appliance(ground.one, _config(priority=150)) as one:
        ground.wait_for_holder(ground.one)
        _kill_all(one)
        one.config = {"defaults": {"drain": "1s"}}
        one.write(one.config)
        with ground.one.inside():
            one.start(through=["setpriv", "--bounding-set=-all"])
        (told,) = one.events("leftovers-stay")
        assert told["left"] == [f"{VIP}/24", f"{OTHER}/24"]
        assert ground.holders() == [ground.one]


@pytest.mark.slow("real timers of several routers")
def test_a_reload_without_virtual_ips_leaves_nothing_of_a_dead_vrrp(ground: Field):
    """The reload that removes the last virtual IP removes what a vrrp that is down left."""
    with _appliance(ground.one, _config(priority=150)) as one:
        ground.wait_for_holder(ground.one)
        ground.wait_for_holder(ground.one, OTHER)
        one.supervisorctl("stop", "vrrp")
        assert not ground.holders()
        with ground.one.inside(), Addresses(AddressRecord(one.paths.owned_addresses)) as addresses:
            addresses.take(socket.if_nametoindex("eth0"), [f"{VIP}/24"])
        assert ground.holders() == [ground.one]
        assert one.reload({"defaults": {"drain": "1s"}})["ok"]
        assert not ground.holders()


@pytest.mark.slow("real timers of several routers")
def test_a_killed_supervisord_moves_nothing(ground: Field):
    """The next one's vrrp goes on with the addresses that are there: they never leave the interface."""
    with (
        _appliance(ground.one, _config(priority=150, advert="2s")) as one,
        AddressMonitor(ground.one) as monitor,
    ):
        ground.wait_for_holder(ground.one)
        before = one.program_pid("vrrp")
        assert before
        kill(one.pid)
        with ground.one.inside():
            one.start()
        one.wait_for_restart("vrrp", before)
        wait_until(lambda: _state(one) == "active", what="it is active again")
        assert ground.holders() == [ground.one]
        assert monitor.went(VIP) == 0


@pytest.mark.slow("real timers of several routers")
def test_a_stop_of_everything_under_load_loses_nothing(ground: Field):
    """TERM to an appliance that is active, with all processors busy: no probe of a client is lost."""
    serve(ground.one, ground.two)
    with (
        _appliance(ground.one, _config(priority=150)) as one,
        _appliance(ground.two, _config(priority=100)) as two,
        ExitStack() as busy,
    ):
        ground.wait_for_holder(ground.one)
        wait_until(lambda: _state(two) == "backup", what="the other one is backup")
        for _ in range(os.cpu_count() or 1):
            spinning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            busy.callback(end, spinning)
        with VipClient(ground.client, VIP) as client:
            client.wait_for_answer_by("one")
            begin = client.mark()
            one.terminate()
            client.wait_for_answer_by("two")
            outage = client.stop().since(begin)
        assert (outage.answerers, outage.lost) == (["one", "two"], 0)
        ground.wait_for_holder(ground.two)
        wait_until(lambda: not one.is_running(), what="the appliance has ended")
        assert one.stop(patience=0) == 0


@pytest.mark.promise("survives", "`supervisorctl restart vrrp`")
def test_supervisorctl_restart_of_vrrp_loses_nothing(ground: Field):
    """The virtual IP is at the peer until it comes back (`preempt`), and no probe of a client is lost."""
    serve(ground.one, ground.two)
    with (
        _appliance(ground.one, _config(priority=150)) as one,
        _appliance(ground.two, _config(priority=100)) as two,
    ):
        ground.wait_for_holder(ground.one)
        wait_until(lambda: _state(two) == "backup", what="the other one is backup")
        with VipClient(ground.client, VIP) as client:
            client.wait_for_answer_by("one")
            begin = client.mark()
            one.supervisorctl("restart", "vrrp")
            ground.wait_for_holder(ground.one)
            client.wait_for_answer_by("one")
            outage = client.stop().since(begin)
        assert (outage.answerers, outage.lost) == (["one", "two", "one"], 0)
