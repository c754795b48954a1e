"""A reload that would put a virtual IP of this node into fault is refused, unless it is forced."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance
from support.vrrp.vrrp_field import VIP, Field
from support.vrrp.vrrp_node import VrrpNode, router, track

from appliance.model.snapshot.virtual_router import Notify, VirtualRouter

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "tcpdump", root=True),
    pytest.mark.slow("real timers of several routers"),
]


def _config(interface: str) -> dict[str, object]:
    address = {"addresses": [f"{VIP}/24"], "interface": interface, "router_id": 42}
    return {"virtual_ips": {"api": {**address, "version": 3, "advert": "100ms"}}}


def _notifying(command: str) -> Notify:
    return Notify(active=(command,), backup=(), fault=(), stop=(), any=(), user=None, timeout=5.0)


def _state(one: Appliance) -> str:
    routers = one.ask("vrrp", "status")["routers"]
    assert isinstance(routers, list)
    return str(routers[0]["state"])


def test_the_operator_is_asked_to_force_it(ground: Field):
    """`reload` leaves the address where it is and names the key; with `--force` it is done."""
    with ground.one.inside():
        one = Appliance(_config("eth0"))
    with ground.one.inside():
        one.__enter__()
    try:
        ground.wait_for_holder(ground.one)
        one.write(_config("eth9"))
        refused = one.command("reload", check=False)
        assert refused.returncode == 1
        assert "virtual_ips.api.interface" in refused.stderr
        assert "eth9 does not exist" in refused.stderr
        assert "appliance reload --force" in refused.stderr
        assert _state(one) == "active"
        assert ground.holders() == [ground.one]
        with one.reload_connection() as connection, connection.makefile("rb") as lines:
            connection.sendall(b"reload --force\n")
            assert json.loads(lines.readline())["ok"] is True
        wait_until(lambda: _state(one) == "fault", what="it is in fault")
        wait_until(lambda: not ground.holders(), what="the address is gone")
        assert one.reload()["unchanged"] is True
        one.write(_config("eth0"))
        one.command("reload", "--force")
        ground.wait_for_holder(ground.one)
    finally:
        one.__exit__(None, None, None)


_REASONS = {
    "interface": (router(interface="eth9"), "virtual_ips.api.interface"),
    "another-id": (router(interface="eth9", router_id=43), "virtual_ips.api.interface"),
    "another-name": (router("other", interface="eth9"), "virtual_ips.other.interface"),
    "source": (router(source="192.0.2.77"), "virtual_ips.api.source"),
    "track": (
        router(track=(track("interface", "eth9", name="uplink", weight=None),)),
        "virtual_ips.api.track.uplink.interface",
    ),
}


@pytest.mark.parametrize("reason", list(_REASONS))
def test_what_would_be_a_fault_is_refused(ground: Field, reason: str):
    """Whatever it is that would make the active give up its address, the key is named."""
    wanted, path = _REASONS[reason]
    with VrrpNode(ground.one, router()) as ours:
        ours.wait_for("active")
        answer = _prepared(ours, wanted)
        assert answer["ok"] is False
        assert [each["path"] for each in answer["errors"]] == [path]
        assert _prepared(ours, wanted, forced=True)["ok"] is True


def test_what_would_put_its_sync_group_into_fault_is_refused(ground: Field):
    """A new member without its interface takes the addresses of the whole group with it."""
    alone, together = router("v4"), router("v4", sync_group="service")
    mate = router("v6", sync_group="service", addresses=("fd00::100/64",), interface="eth9")
    with VrrpNode(ground.one, alone) as ours:
        ours.wait_for("active", "v4")
        answer = ours.prepare(together, mate)
        assert answer["ok"] is False
        assert [each["path"] for each in answer["errors"]] == ["virtual_ips.v6.interface"]
        assert ours.prepare(alone, replace(mate, sync_group=None))["ok"] is True


def test_a_backup_and_a_weight_stand_in_no_way(ground: Field):
    """Where nothing is held, and where a track only weighs, a reload is a reload."""
    weighed = router(track=(track("interface", "eth9", name="uplink", weight=10),))
    with VrrpNode(ground.two, router(priority=150)) as other, VrrpNode(ground.one, router()) as ours:
        other.wait_for("active")
        ours.wait_for("backup")
        assert _prepared(ours, router(interface="eth9"))["ok"] is True
        assert _prepared(other, weighed)["ok"] is True


def test_a_command_that_is_not_there_is_refused(ground: Field, tmp_path: Path):
    """A notify command or script that cannot be run refuses a reload, unless it was accepted before."""
    script = tmp_path / "told"
    script.write_text("#!/bin/sh\n")
    with VrrpNode(ground.one, router()) as ours:
        ours.wait_for("active")
        answer = _prepared(ours, router(notify=_notifying(str(script))))
        assert [each["path"] for each in answer["errors"]] == ["virtual_ips.api.notify.active"]
        assert "no executable file" in str(answer["errors"])
        script.chmod(0o755)
        ours.reload(router(notify=_notifying(str(script))))
        script.unlink()
        assert _prepared(ours, router(priority=120, notify=_notifying(str(script))))["ok"] is True
        unknown = router(track=(track("script", "lb-no-such-command", name="check"),))
        assert "lb-no-such-command" in str(_prepared(ours, unknown)["errors"])


def _prepared(ours: VrrpNode, wanted: VirtualRouter, *, forced: bool = False) -> dict[str, object]:
    more = {"forced": True} if forced else {}
    return ours.prepare(wanted, **more)
