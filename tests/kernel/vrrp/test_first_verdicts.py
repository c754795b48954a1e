"""Starting beside an active, or alone, before all that is tracked has a first verdict."""

import contextlib
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.network.namespaces import Node
from support.processes.processes import command_line, with_environment
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance
from support.vrrp.keepalived import Instance, Keepalived
from support.vrrp.vrrp_field import VIP, VIP6, Field
from support.vrrp.vrrp_node import VrrpNode, router, track

from appliance.model.snapshot.virtual_router import Track, VirtualRouter

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "keepalived", "tcpdump", root=True)]

PORT = 9445


@contextlib.contextmanager
def _healthy(node: Node, kind: str) -> Iterator[None]:
    """Run a peer of priority 100 that is active: one of ours, or a keepalived."""
    with contextlib.ExitStack() as stack:
        if kind == "ours":
            stack.enter_context(VrrpNode(node, router(priority=100))).wait_for("active")
        else:
            stack.enter_context(Keepalived(node, Instance(priority=100))).wait_for("MASTER")
        yield


peers = pytest.mark.parametrize("kind", ["ours", "keepalived"])


def _slow(flag: Path, *, exit_status: int, timeout: float = 20.0) -> Track:
    """Return a script that takes until `flag` exists, and then ends with this status."""
    words = ("-c", f"while [ ! -e {flag} ]; do sleep 0.05; done; exit {exit_status}")
    return track("script", "sh", arguments=words, name="slow", interval=1.0, timeout=timeout, weight=None)


@pytest.mark.slow("real timers of several routers")
@peers
def test_a_script_that_is_slow_and_fails_takes_nothing(ground: Field, tmp_path: Path, kind: str):
    """While the first run of a script lasts a healthy peer goes on, and its failure is a fault."""
    flag = tmp_path / "flag"
    with (
        _healthy(ground.two, kind),
        VrrpNode(ground.one, router(priority=150, track=(_slow(flag, exit_status=1),))) as ours,
    ):
        ours.wait_for("backup")
        ground.wait_for_adverts(20, source=ground.two.address)
        flag.touch()
        ours.wait_for("fault")
        assert ours.transitions() == ["backup", "fault"]
        assert not ground.capture.adverts(source=ground.one.address)
        assert ground.holders() == [ground.two]


@pytest.mark.slow("real timers of several routers")
@peers
def test_a_script_that_is_slow_and_passes_lets_it_preempt(ground: Field, tmp_path: Path, kind: str):
    """The verdict ends the wait at once, and what follows is a preemption."""
    flag = tmp_path / "flag"
    with (
        _healthy(ground.two, kind),
        VrrpNode(ground.one, router(priority=150, track=(_slow(flag, exit_status=0),))) as ours,
    ):
        ours.wait_for("backup")
        ground.wait_for_adverts(20, source=ground.two.address)
        assert not ground.capture.adverts(source=ground.one.address)
        flag.touch()
        ground.wait_for_holder(ground.one)
        told = ours.status()["transitions"]
        assert [each["cause"] for each in told] == ["started", "preempted"]


@pytest.mark.slow("real timers of several routers")
def test_a_weight_without_a_verdict_is_waited_for(ground: Field, tmp_path: Path):
    """A weight that will be subtracted is known before the claim: a healthy peer stays the better one."""
    flag = tmp_path / "flag"
    slow = _slow(flag, exit_status=1)
    tracked = track("script", "sh", arguments=slow.arguments, name="slow", timeout=20.0, weight=-100)
    with _healthy(ground.two, "ours"), VrrpNode(ground.one, router(priority=150, track=(tracked,))) as ours:
        ours.wait_for("backup")
        ground.wait_for_adverts(10, source=ground.two.address)
        flag.touch()
        wait_until(lambda: ours.status()["priority"] == 50, what="the weight counts")
        ground.wait_for_adverts(10, source=ground.two.address)
        assert ours.transitions() == ["backup"]


def test_alone_the_address_is_taken_with_the_verdict(ground: Field, tmp_path: Path):
    """Alone it waits for the verdict too, and no longer."""
    flag = tmp_path / "flag"
    with VrrpNode(ground.one, router(track=(_slow(flag, exit_status=0),))) as ours:
        ours.wait_for("backup")
        assert not ground.holders()
        flag.touch()
        ground.wait_for_holder(ground.one)
        assert ours.transitions() == ["backup", "active"]


@pytest.mark.slow("real timers of several routers")
def test_a_sync_group_waits_for_all_of_its_members(ground: Field, tmp_path: Path):
    """What one member waits for holds back the others, and its fault is theirs."""
    flag = tmp_path / "flag"
    slow = (_slow(flag, exit_status=1),)
    with (
        VrrpNode(ground.two, router(priority=100), _six(priority=100)) as peer,
        VrrpNode(ground.one, _four(slow), _six(priority=150, sync_group="both")) as ours,
    ):
        peer.wait_for("active")
        peer.wait_for("active", "six")
        ours.wait_for("backup")
        ground.wait_for_adverts(20, source=ground.two.address)
        flag.touch()
        ours.wait_for("fault")
        ours.wait_for("fault", "six")
        assert ours.transitions("six") == ours.transitions() == ["backup", "fault"]
        assert ground.holders() == ground.holders(VIP6) == [ground.two]


def _four(tracked: tuple[Track, ...]) -> VirtualRouter:
    return router(priority=150, sync_group="both", track=tracked)


def _six(**changes: object) -> VirtualRouter:
    return router("six", router_id=6, addresses=(f"{VIP6}/64",), **changes)


@contextlib.contextmanager
def _silent_tracker(node: Node, *, priority: int) -> Iterator[VrrpNode]:
    """Run one whose tracker stands still from its first moment on."""
    tracked = track("script", "true", name="check", weight=None)
    with VrrpNode(node, router(priority=priority, track=(tracked,))) as ours:
        pid = wait_until(lambda: _tracker_of(ours), what="the tracker is started", pause=0.001)
        os.kill(pid, signal.SIGSTOP)
        yield ours


def _tracker_of(ours: VrrpNode) -> int:
    here = with_environment(f"APPLIANCE_RUNTIME_DIR={ours.paths.runtime}")
    return next((pid for pid in here if "appliance.programs.tracker" in command_line(pid)), 0)


@pytest.mark.slow("real timers of several routers")
def test_verdicts_that_never_come_keep_out_who_is_not_missed(ground: Field):
    """Beside an active a track without a verdict is a fault in the end, until that one has gone."""
    with (
        VrrpNode(ground.two, router(priority=100)) as peer,
        _silent_tracker(ground.one, priority=150) as ours,
    ):
        peer.wait_for("active")
        ours.wait_for("fault")
        assert "no result yet" in str(ours.status()["fault_reasons"])
        assert ours.transitions() == ["backup", "fault"]
        assert ground.holders() == [ground.two]
        peer.stop()
        ground.wait_for_holder(ground.one)
        assert '"counts_as": "down"' in ours.log()


@pytest.mark.slow("real timers of several routers")
def test_verdicts_that_never_come_leave_no_address_nowhere(ground: Field):
    """Alone it takes the address when the time of the tracks is over, and says that they are silent."""
    with _silent_tracker(ground.one, priority=150) as ours:
        ground.wait_for_holder(ground.one)
        assert ours.transitions() == ["backup", "active"]
        assert '"counts_as": "passed"' in ours.log()


def _config(port: int = PORT) -> dict[str, object]:
    return {
        "api": {"frontends": {"ready": {"bind": [f"0.0.0.0:{port}"], "respond": "/haproxy_ready"}}},
        "virtual_ips": {
            "api": {
                "addresses": [f"{VIP}/24"],
                "interface": "eth0",
                "router_id": 42,
                "version": 3,
                "advert": "20ms",  # it has listened long before the tracker can have started
                "priority": 150,
                "track": {"serving": {"program": "proxy-api"}},
            }
        },
    }


@pytest.mark.slow("real timers of several routers")
@peers
def test_an_appliance_takes_the_address_when_its_workers_accept(ground: Field, kind: str):
    """A peer of lower priority serves until a connection to the starting one is accepted."""
    with _healthy(ground.two, kind), _started(ground.one) as one:
        wait_until(lambda: ground.one.holds(VIP), what="the better one has it", timeout=30.0, pause=0.0)
        with ground.one.inside(), socket.create_connection((VIP, PORT), timeout=5.0):
            pass
        ground.wait_for_holder(ground.one)
        wait_until(lambda: _state(one) == "active", what="it is active")


@pytest.mark.slow("real timers of several routers")
@peers
def test_an_appliance_whose_port_is_taken_takes_nothing(ground: Field, kind: str):
    """Without workers that accept, a starting one leaves the address with the healthy peer."""
    with contextlib.ExitStack() as stack:
        with ground.one.inside():
            other = stack.enter_context(socket.create_server(("0.0.0.0", PORT)))
        other.listen()
        stack.enter_context(_healthy(ground.two, kind))
        one = stack.enter_context(_started(ground.one))
        wait_until(lambda: _state(one) == "fault", what="it is in fault", timeout=30.0)
        ground.wait_for_adverts(30, source=ground.two.address)
        assert not ground.capture.adverts(source=ground.one.address)
        assert ground.holders() == [ground.two]
        other.close()
        ground.wait_for_holder(ground.one)


def _state(one: Appliance) -> str:
    with contextlib.suppress(OSError, ValueError):
        return str(one.ask("vrrp", "status")["routers"][0]["state"])
    return ""


@contextlib.contextmanager
def _started(node: Node) -> Iterator[Appliance]:
    """Start an appliance in a node and do not wait for it."""
    one = Appliance(_config())
    with node.inside():
        one.launch()
    try:
        yield one
    finally:
        one.__exit__(None, None, None)
