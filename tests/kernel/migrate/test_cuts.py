"""The network between two `migrate` is cut in the middle of a move, or the other one stops to answer.

`E2E_FULL=1` tries 100 cuts.
"""

import os
import random
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from support.linger.linger_field import PORT
from support.migrate.migrate_field import (
    MIGRATE_PORT,
    fill,
    is_empty,
    migrating_nodes,
    settle,
    take_back,
    wait_until_empty,
)
from support.network.checked_streams import CheckedStreams
from support.network.namespaces import Node
from support.processes.waiting import wait_until

from appliance.worker.sessions_to_other_nodes import MOST

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nft", "openssl", root=True)]

_FULL: Final = os.environ.get("E2E_FULL") == "1"
_COUNT: Final = 110  # sessions of each family: more than a batch
_BYTES: Final = 220_000
"""A move of so many sessions takes about so many bytes each way, or less."""


@contextmanager
def _cut(node: Node, direction: str, after: int) -> Iterator[None]:
    """Drop what another `migrate` exchanges with that of a node, after so many bytes of one direction."""
    side = "dport" if direction == "input" else "sport"
    node.run(["nft", "add", "table", "inet", "cut"])
    for hook in ("input", "output"):
        node.run(["nft", f"add chain inet cut {hook} {{ type filter hook {hook} priority 0; }}"])
    rule = f"tcp {side} {MIGRATE_PORT} quota over {after} bytes"
    node.run(["nft", f"add rule inet cut {direction} {rule} counter drop"])
    try:
        yield
    finally:
        node.run(["nft", "delete", "table", "inet", "cut"])


def _is_cut(node: Node) -> bool:
    """Return whether a packet was dropped."""
    return "packets 0 " not in node.run(["nft", "list", "table", "inet", "cut"])


@pytest.mark.promise(
    "docs/taking-a-node-away.md", "a network that is cut in the middle of a move costs one batch at most"
)
@pytest.mark.slow("many cuts, each of which is waited for")
@pytest.mark.parametrize("seed", range(50 if _FULL else 1))
def test_a_cut_network_costs_one_batch_at_most(tmp_path: Path, seed: int):
    """It is cut after a random number of bytes of either direction; when it is back, the rest moves."""
    drawn = random.Random(seed)  # noqa: S311  # where it is cut
    with (
        migrating_nodes(2, tmp_path) as (client, (one, two)),
        CheckedStreams(client, port=PORT, period=0.1) as streams,
    ):
        for direction, most in (("input", _BYTES), ("output", _BYTES // 20)):
            fill(streams, _COUNT)
            before = sum(streams.report().ended.values())
            with _cut(two.node, direction, drawn.randrange(most)):
                one.appliance.command("leave")
                settle(two, [two])
                wait_until(
                    lambda: _is_cut(two.node) or is_empty(one), what="the network is cut", timeout=60.0
                )
                streams.go_on()  # by way of both nodes
            wait_until_empty(one)
            streams.go_on()
            ended = sum(streams.report().ended.values()) - before
            sys.stderr.write(f"{direction}: {ended} ended\n")
            assert ended <= MOST
            assert "wrong bytes" not in streams.report().ended
            take_back(two, one)


@pytest.mark.slow("waits for a watchdog")
def test_a_peer_that_hangs_holds_nothing_up(tmp_path: Path):
    """Sessions go on where they are; when the other `migrate` works again, they move."""
    with (
        migrating_nodes(2, tmp_path) as (client, (one, two)),
        CheckedStreams(client, port=PORT, period=0.1) as streams,
    ):
        fill(streams, _COUNT)
        pid = two.appliance.program_pid("migrate") or 0
        os.kill(pid, signal.SIGSTOP)
        one.appliance.command("leave")
        wait_until(lambda: one.appliance.events("sessions-stay"), what="sessions stay", timeout=30.0)
        streams.go_on()
        two.appliance.wait_for_restart("migrate", pid)  # by the watchdog
        wait_until_empty(one)
        streams.go_on()
        assert streams.report().ended == {}
        assert one.migrated()["given"] == 2 * _COUNT
