"""A master that loses power: its packets are dropped, nothing refuses and nothing resets.

The values are the README's. Clients give an answer ten seconds, as those of Kubernetes give a handshake.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from support.load.load import Load
from support.network.namespaces import Node, Segment
from support.peers.backend import Backend
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance
from support.values import certificates

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", root=True)]

PORT: Final = 19445
PLAIN, SECURE = 6443, 6444
SICK: Final = "master-1"
CHECK: Final = {
    "type": "https",
    "path": "/readyz",
    "fast_interval": "2s",
    "fall": 2,
    "rise": 3,
    "timeout": "3s",
}
SOON: Final = 12.0
"""Seconds until it is out of use: about 6 on an idle machine; without clients' word and with a check's whole
time for connecting it was 20."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The appliance on a node of its own, and the masters by name, each on its own."""

    appliance: Appliance
    balancer: Node
    masters: dict[str, Node]

    @property
    def sick(self) -> Node:
        """The master that will lose power."""
        return self.masters[SICK]


@pytest.fixture
def ground() -> Iterator[Ground]:
    """Three TLS masters and the appliance, with the README's values."""
    with ExitStack() as stack:
        segment = stack.enter_context(Segment())
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        balancer = segment.node("balancer")
        nodes = {f"master-{number}": segment.node(f"master-{number}") for number in range(3)}
        for name, node in nodes.items():
            _serve(stack, node, name, directory)
            # A neighbour that stays known: else the kernel says "no route to host" after three seconds.
            balancer.batch(f"neigh replace {node.address} lladdr {node.mac} dev eth0 nud permanent")
        with balancer.inside():
            appliance = stack.enter_context(Appliance(_config(nodes)))
        for name in nodes:  # beside other work the first check may come before its server answers
            appliance.wait_for_event("server-up", lambda event: event["server"] == name, timeout=30.0)  # noqa: B023  # called at once
        yield Ground(appliance=appliance, balancer=balancer, masters=nodes)


def _serve(stack: ExitStack, node: Node, name: str, directory: Path) -> None:
    files = certificates.issue(directory, node.address)
    with node.inside():
        stack.enter_context(Backend(name, port=PLAIN, tls_port=SECURE, certificate=(files.chain, files.key)))


def _config(nodes: dict[str, Node], *, interval: str = "5s") -> dict[str, object]:
    servers = {
        name: {"address": f"{node.address}:{PLAIN}", "check": {"port": SECURE}}
        for name, node in nodes.items()
    }
    return {
        "api": {"workers": 2, "frontends": {"kube-api": {"bind": [f"127.0.0.1:{PORT}"], "pool": "masters"}}},
        "pools": {"masters": {"check": {**CHECK, "interval": interval}, "servers": servers}},
        "defaults": {"timeouts": {"connect": "2s"}},
    }


def _living(load: Load) -> int:
    return sum(session.server == SICK for session in load.report().living)


def _have_one_at_the_sick(load: Load) -> None:
    """Open more sessions if it has none: workers learn of a server a moment after `health` has logged it."""

    def has_one() -> bool:
        report = load.report()
        if len(report.living) < len(report.sessions):
            return False  # one is being opened
        if any(session.server == SICK for session in report.living):
            return True
        load.open_sessions(1)
        return False

    wait_until(has_one, what=f"{SICK} has a session")


@pytest.mark.promise("docs/concepts.md", "a master that loses power costs no request")
@pytest.mark.parametrize(
    "interval", ["5s", pytest.param("60s", marks=pytest.mark.slow("the same way as above"))]
)
def test_a_master_that_loses_power_costs_no_request(ground: Ground, interval: str):
    """It is out of use soon, every new connection is served elsewhere in time, and its watches are ended.

    It is the clients that bring the check about: its interval may be as long as it likes.
    """
    assert ground.appliance.reload(_config(ground.masters, interval=interval))["ok"] is True
    with ExitStack() as stack:
        with ground.balancer.inside():
            load = stack.enter_context(Load(port=PORT, sessions=30, pause=60.0))
        load.wait_for_sessions()
        _have_one_at_the_sick(load)
        ground.sick.isolate()
        cut = time.monotonic()
        load.set_rate(20.0)  # not before: a request that the master has already is lost with it
        down = ground.appliance.wait_for_event("server-down", lambda event: event["server"] == SICK)
        assert time.monotonic() - cut < SOON
        assert (down["result"], down["detail"]) == ("L4TOUT", "no answer within 2 s")
        wait_until(lambda: _living(load) == 0, what="its sessions are ended")
        assert time.monotonic() - cut < SOON + 1.0
        before = load.report().completed
        wait_until(lambda: load.report().completed > before + 50, what="50 connections more")
        load.stop_new()
        wait_until(lambda: load.report().under_way == 0, what="nothing is under way")
        report = load.report()
        assert report.failures == {}
        assert {(session.server, session.how) for session in report.ended} == {(SICK, "reset")}


@pytest.mark.slow("load on a segment of its own")
def test_a_master_that_nobody_connects_to_is_found_by_its_checks(ground: Ground):
    """Without a client's word it takes up to an interval, a fast one and the times for two connects."""
    ground.sick.isolate()
    cut = time.monotonic()
    down = ground.appliance.wait_for_event("server-down", lambda event: event["server"] == SICK)
    assert time.monotonic() - cut < SOON
    assert down["result"] == "L4TOUT"
