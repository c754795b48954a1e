"""A second `appliance run` on a node that has a virtual IP, with a real keepalived as the backup."""

import contextlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.load.stalls import judged
from support.peers.nginx import nginx
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance
from support.supervisor.release import DIES, Release
from support.vrrp.keepalived import Instance, Keepalived
from support.vrrp.vip_client import VipClient, serve
from support.vrrp.vrrp_field import VIP, AddressMonitor, Field
from support.vrrp.vrrp_packets import Announcement

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "nginx", "tcpdump", "keepalived", root=True),
    pytest.mark.slow("whole appliances on a segment of their own"),
]

_FULL = os.environ.get("E2E_FULL") == "1"
_PORT = 9445
_ADVERT = 0.2


def _config(server: str) -> dict[str, object]:
    return {
        "api": {"frontends": {"kube-api": {"bind": [f"0.0.0.0:{_PORT}"], "pool": "masters"}}},
        "pools": {"masters": {"check": {"type": "tcp"}, "servers": {"master-0": {"address": server}}}},
        "virtual_ips": {
            "api": {
                "addresses": [f"{VIP}/24"],
                "interface": "eth0",
                "router_id": 42,
                "version": 3,
                "advert": f"{_ADVERT * 1000:g}ms",
                "priority": 150,
                "announce": {"delay": "off", "refresh": "off"},
                "track": {"serving": {"program": "proxy-api"}},
            }
        },
    }


def _router(appliance: Appliance) -> dict[str, object]:
    routers = appliance.ask("vrrp", "status").get("routers")
    assert isinstance(routers, list)
    return dict(routers[0])


def _unseen(ground: Field, change: Callable[[Appliance], None]) -> None:
    """Run ours on `one` and keepalived on `two`, make a change of `one`, and see that nobody has noticed."""
    with contextlib.ExitStack() as stack:
        serve(ground.one, ground.two)
        with ground.client.inside():
            server = f"{ground.client.address}:{stack.enter_context(nginx()).port}"
        with ground.one.inside():
            made = stack.enter_context(Appliance(_config(server)))
        ground.wait_for_holder(ground.one)
        peer = stack.enter_context(Keepalived(ground.two, Instance(priority=100, advert=_ADVERT)))
        peer.wait_for("BACKUP")
        ground.wait_for_adverts(10, source=ground.one.address)
        monitor = stack.enter_context(AddressMonitor(ground.one))
        client = stack.enter_context(VipClient(ground.client, VIP))
        client.wait_for_answer_by("one")
        begin, mark = client.mark(), ground.capture.mark()
        with ground.one.inside():
            change(made)
        wait_until(lambda: _router(made)["state"] == "active", what="it is active")
        ground.wait_for_adverts(10, source=ground.one.address)
        client.wait_for_more(50)
        outage = client.stop().since(begin)
        assert (outage.answerers, outage.lost) == (["one"], 0)
        assert monitor.went(VIP) == 0
        assert peer.states() == ["BACKUP"]
        assert ground.senders(since=mark) == {ground.one.address}
        packets = ground.capture.read()[mark:]
        assert not [each for each in packets if isinstance(each, Announcement)]
        since = set(packets)
        assert not [each for each in ground.capture.adverts(priority=0) if each in since]


def _upgrade(made: Appliance, release: Release) -> None:
    former = made.process
    made.process = release.run(made.paths, made.log_file)
    wait_until(lambda: made.events("appliance-taken-over"), what="it is upgraded", timeout=60.0)
    assert former.wait(60) == 0


def _try_to_upgrade(made: Appliance, release: Release) -> None:
    failed: subprocess.Popen[bytes] = release.run(made.paths, made.log_file)
    assert failed.wait(120) == 3
    wait_until(made.is_whole, what="the former one has its programs", timeout=60.0)


def test_an_upgrade_is_not_seen(ground: Field, tmp_path: Path):
    """The peer stays backup, no probe is lost, the address never goes, and nobody hears of a change of it."""
    release = Release(tmp_path / "newer", "9.9.9")
    judged(lambda: _unseen(ground, lambda made: _upgrade(made, release)), longest=_ADVERT)


@pytest.mark.skipif(not _FULL, reason="it takes half a minute: E2E_FULL=1")
def test_an_upgrade_that_fails_is_not_seen(ground: Field, tmp_path: Path):
    """Nor is one whose workers do not start, where vrrp has changed its process twice."""
    broken = Release(tmp_path / "broken", "9.9.9", changes={"programs/worker.py": DIES})
    judged(lambda: _unseen(ground, lambda made: _try_to_upgrade(made, broken)), longest=_ADVERT)
