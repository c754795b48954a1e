"""Sessions of the proxy move to another node with their virtual IP, and every byte of them is checked.

`E2E_FULL=1` moves 1,000 sessions of each family 20 times, and 5,000 of each once there and back.
"""

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from support.linger.linger_field import PORT
from support.migrate.migrate_field import (
    VIPS,
    MigratingNode,
    fill,
    is_empty,
    late_packets_held,
    leave,
    migrating_nodes,
    settle,
    take_back,
    wait_until_empty,
)
from support.network.checked_streams import CheckedStreams
from support.processes.waiting import wait_until

from appliance.worker.sessions_to_other_nodes import MOST

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nft", "openssl", root=True)]

_FULL: Final = os.environ.get("E2E_FULL") == "1"
_COUNT: Final = 1000 if _FULL else 50  # sessions of each family
_ROUNDS: Final = 20 if _FULL else 3
_MANY: Final = 5000 if _FULL else 200  # the same: more than a batch
_CUT: Final = 1000 if _FULL else 200  # the same, as programs are killed
_SLOW: Final = pytest.mark.slow("many moves of whole appliances")


@pytest.mark.promise("program", "migrate")
@pytest.mark.promise(
    "docs/taking-a-node-away.md", "a node that was left may be switched off, and its sessions go on"
)
@pytest.mark.promise("kernel", "connections that move to another node (TCP_REPAIR)")
def test_a_node_may_go_at_once_and_its_sessions_go_on(tmp_path: Path):
    """After `leave --wait` the node is cut from the network; they come back, and the other one is cut."""
    with (
        migrating_nodes(2, tmp_path) as (client, (one, two)),
        CheckedStreams(client, port=PORT, period=0.1) as streams,
    ):
        fill(streams, _COUNT)
        with late_packets_held(one.node, tmp_path) as held:
            leave(one, two)
            wait_until(lambda: held() == 2 * _COUNT, what="late packets of all are held back")
        one.node.unplug()
        streams.go_on()
        one.node.plug()
        settle(two, [one, two])
        take_back(two, one)
        two.node.unplug()
        streams.go_on()
        sys.stderr.write(f"{streams.pauses()}\n")
        report = streams.report()
        assert report.ended == {}
        assert report.to == dict.fromkeys(VIPS, _COUNT)
        assert [one.migrated()["taken"], one.migrated()["given"]] == [2 * _COUNT, 2 * _COUNT]


@_SLOW
@pytest.mark.parametrize("count", [2, pytest.param(3, marks=pytest.mark.full("the same with one more"))])
def test_there_and_back_many_times(tmp_path: Path, count: int):
    """No byte of any session is lost, however often they move, and no packet is left held back."""
    with (
        migrating_nodes(count, tmp_path) as (client, nodes),
        CheckedStreams(client, port=PORT, period=0.2) as streams,
    ):
        fill(streams, _COUNT)
        one, two = nodes[:2]
        for _ in range(_ROUNDS):
            leave(one, two)
            streams.go_on()
            take_back(two, one)
            streams.go_on()
            sys.stderr.write(f"{streams.pauses()}\n")
        assert streams.report().ended == {}
        assert [each.migrated()["lost"] for each in nodes] == [0] * count


@_SLOW
def test_many_sessions_and_their_node_is_off_at_once(tmp_path: Path):
    """As soon as `leave` returns the node has no network; all sessions go on, and return."""
    period = 5.0 if _FULL else 0.2
    with (
        migrating_nodes(2, tmp_path, workers=2) as (client, (one, two)),
        CheckedStreams(client, port=PORT, period=period) as streams,
    ):
        fill(streams, _MANY)
        begun = time.monotonic()
        one.appliance.command("leave", "--within", "120s")
        sys.stderr.write(f"{2 * _MANY} left in {time.monotonic() - begun:.1f} s\n")
        one.node.unplug()
        settle(two, [two])
        streams.go_on()
        sys.stderr.write(f"{streams.pauses()}\n")
        one.node.plug()
        settle(two, [one, two])
        take_back(two, one)
        two.node.unplug()
        streams.go_on()
        assert streams.report().ended == {}
        assert streams.report().to == dict.fromkeys(VIPS, _MANY)
        assert [one.migrated()["lost"], one.migrated()["taken"]] == [0, 2 * _MANY]


@_SLOW
def test_a_node_that_is_stopped_gives_its_sessions_away(tmp_path: Path):
    """TERM ends it long before the end of its drain, and no session."""
    with (
        migrating_nodes(2, tmp_path) as (client, (one, two)),
        CheckedStreams(client, port=PORT, period=0.1) as streams,
    ):
        fill(streams, _COUNT)
        one.appliance.terminate()
        assert one.appliance.wait(patience=25.0) == 0  # `drain` is 30 s
        one.node.unplug()
        streams.go_on()
        assert streams.report().ended == {}
        assert two.migrated()["taken"] == 2 * _COUNT


def _kill(node: MigratingNode, program: str) -> None:
    old = node.appliance.program_pid(program)
    node.appliance.kill(program)
    node.appliance.wait_for_restart(program, old or 0)


_FAULTS: Final[dict[str, Callable[[MigratingNode, MigratingNode], None]]] = {
    "giver": lambda one, _: _kill(one, "migrate"),
    "taker": lambda _, two: _kill(two, "migrate"),
    "giver's linger": lambda one, _: _kill(one, "linger"),
    "taker's linger": lambda _, two: _kill(two, "linger"),
}


@pytest.mark.promise("survives", "migrate")
@pytest.mark.parametrize(
    "fault", ["giver", *(pytest.param(each, marks=_SLOW) for each in _FAULTS if each != "giver")]
)
def test_a_fault_in_the_middle_costs_one_batch_at_most(tmp_path: Path, fault: str):
    """Programs of either node are killed at random moments of moves: what ends is one batch."""
    drawn = random.Random(fault)  # noqa: S311  # when the fault comes
    with (
        migrating_nodes(2, tmp_path) as (client, (one, two)),
        CheckedStreams(client, port=PORT, period=0.5 if _FULL else 0.1) as streams,
    ):
        for _ in range(_ROUNDS if _FULL else 1):
            fill(streams, _CUT)
            before = sum(streams.report().ended.values())
            given = int(str(one.migrated().get("given", 0)))
            one.appliance.command("leave")
            share = drawn.randrange(1, _CUT)
            wait_until(
                lambda: int(str(one.migrated().get("given", 0))) >= given + share or is_empty(one),  # noqa: B023  # called at once
                what="some have moved",
                pause=0.002,
            )
            _FAULTS[fault](one, two)
            settle(two, [two])
            wait_until_empty(one)
            streams.go_on()
            assert sum(streams.report().ended.values()) - before <= MOST
            take_back(two, one)
            streams.go_on()
        assert "wrong bytes" not in streams.report().ended
        sys.stderr.write(f"{streams.report().ended}\n")


@_SLOW
def test_a_signal_is_no_fault(tmp_path: Path):
    """A `migrate` that is told to end in the middle of a move drops nothing."""
    with (
        migrating_nodes(2, tmp_path) as (client, (one, two)),
        CheckedStreams(client, port=PORT, period=0.1) as streams,
    ):
        fill(streams, _COUNT)
        one.appliance.command("leave")
        wait_until(lambda: int(str(one.migrated().get("given", 0))) > 0, what="some have moved")
        os.kill(one.appliance.program_pid("migrate") or 0, signal.SIGTERM)
        wait_until_empty(one)
        streams.go_on()
        assert streams.report().ended == {}
        settle(two, [two])
