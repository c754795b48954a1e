"""Programs are killed, and the network is cut, at each message of a move, in both directions.

A relay before the node that takes sessions stops there: the message is sent, and has not arrived.
"""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

import pytest
from support.linger.linger_field import PORT
from support.migrate.message_relay import MESSAGES, MessageRelay
from support.migrate.migrate_field import (
    MIGRATE_PORT,
    MigratingNode,
    fill,
    migrating_nodes,
    settle,
    wait_until_empty,
)
from support.network.checked_streams import CheckedStreams
from support.network.namespaces import Node
from support.processes.processes import kill
from support.processes.waiting import wait_until

from appliance.model.operator_events import EventKind
from appliance.net.events.kept_events import events_since
from appliance.worker.sessions_to_other_nodes import MOST

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "nft", "openssl", "ss", root=True),
    pytest.mark.slow("many moves, after each of which a program starts or a time-out passes"),
]

_COUNT: Final = 110  # sessions of each family: more than one batch
_TO_COMMIT: Final = MESSAGES[: MESSAGES.index("commit")]


class _Pair:
    """Two nodes with relays before both, and streams."""

    def __init__(
        self, client: Node, nodes: list[MigratingNode], relays: list[MessageRelay], streams: CheckedStreams
    ) -> None:
        self.client, self.nodes, self.relays, self.streams = client, nodes, relays, streams

    def move(self, giver: int, message: str, fault: "_Fault") -> None:
        """Move all sessions away from a node, with a fault at a message; check what became of them."""
        fill(self.streams, _COUNT)
        source, target, relay = self.nodes[giver], self.nodes[1 - giver], self.relays[1 - giver]
        before = self._lost()
        with fault(source, target, relay, message):
            if giver:
                target.appliance.command("reload")
            else:
                source.appliance.command("leave")
            assert relay.stopped.wait(60.0), f"no {message} came"
        settle(target, [target])
        wait_until_empty(source)
        self.streams.go_on()
        # In all, as one of an earlier fault's batch may have gone on and ended since.
        ended = self._ended()
        wait_until(lambda: self._lost() >= ended, what=f"events count {ended} that ended")
        lost = self._lost() - before
        sys.stderr.write(
            f"{source.name}, {message}: {relay.batch} under way, {ended} ended so far, {lost} counted\n"
        )
        assert "wrong bytes" not in self.streams.report().ended
        assert lost <= relay.batch <= MOST
        if message in _TO_COMMIT:
            assert lost == 0
        self._assert_on_one_node(target)

    def _ended(self) -> int:
        return sum(self.streams.report().ended.values())

    def _lost(self) -> int:
        """Return how many sessions were lost, as the events of both nodes have it."""
        listed = [each for node in self.nodes for each in events_since(node.appliance.paths)]
        lost = [each.detail for each in listed if each.kind is EventKind.SESSIONS_LOST]
        return sum(int(each.partition(":")[0]) for each in lost)

    def _assert_on_one_node(self, target: MigratingNode) -> None:
        """Each stream is a connection of this node, and of no other."""
        there = {each.name: _connections(each.node) for each in self.nodes}
        assert there.pop(target.name) >= _connections(self.client, far=True)
        assert not any(there.values())


def _connections(node: Node, *, far: bool = False) -> set[str]:
    """Return the clients' ends of connections to the frontend that a node has."""
    side, column = ("dport", 2) if far else ("sport", 3)
    shown = node.run(["ss", "-tnH", "state", "established", f"( {side} = :{PORT} )"])
    return {each.split()[column] for each in shown.splitlines()}


_Fault = Callable[
    [MigratingNode, MigratingNode, MessageRelay, str], "contextlib.AbstractContextManager[None]"
]


@contextlib.contextmanager
def _killed(node: MigratingNode, relay: MessageRelay, message: str, *, arrives: bool) -> Iterator[None]:
    """What the giver has sent arrives; the taker's message is lost with it."""
    pid = wait_until(lambda: node.appliance.program_pid("migrate"), what="migrate answers")

    def end() -> bool:
        kill(pid)
        return arrives

    relay.stop_at(message, end)
    yield
    node.appliance.wait_for_restart("migrate", pid)


@contextlib.contextmanager
def _cut(source: MigratingNode, _: MigratingNode, relay: MessageRelay, message: str) -> Iterator[None]:
    """The packets of the connection, and of all later ones, are lost until the other node has noticed."""
    healed = threading.Event()

    def cut() -> bool:
        relay.cut()
        relay.stopped.set()
        healed.wait(60.0)
        return False

    source.appliance.forget_log()
    relay.stop_at(message, cut)
    try:
        yield
        wait_until(
            lambda: any(map(source.appliance.events, ("sessions-stay", "session-move-doubtful"))),
            what="the other node does not answer",
        )
    finally:
        relay.heal()
        healed.set()


@contextlib.contextmanager
def _worker_killed(
    _: MigratingNode, target: MigratingNode, relay: MessageRelay, message: str
) -> Iterator[None]:
    """The worker that has been offered the batch is gone when its `migrate` gets the message."""
    (worker,) = target.appliance.workers()

    def end() -> bool:
        kill(worker.pid)
        return True

    relay.stop_at(message, end)
    yield


_FAULTS: Final[dict[str, _Fault]] = {
    "giver killed": lambda source, _, relay, message: _killed(source, relay, message, arrives=True),
    "taker killed": lambda _, target, relay, message: _killed(target, relay, message, arrives=False),
    "network cut": _cut,
}


_CASES: Final = [
    pytest.param(
        message,
        fault,
        id=f"{message}-{fault}",
        marks=() if (number - place) % len(_FAULTS) == 0 else pytest.mark.full("other faults at it"),
    )
    for number, message in enumerate(MESSAGES)
    for place, fault in enumerate(_FAULTS)
]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Pair]:
    """Run two nodes with streams."""
    directory = tmp_path_factory.mktemp("pair")
    with (
        migrating_nodes(2, directory) as (client, nodes),
        CheckedStreams(client, port=PORT, period=0.2) as streams,
        contextlib.ExitStack() as stack,
    ):
        relays = [
            stack.enter_context(MessageRelay(each.node, directory / "nodes.pem", port=MIGRATE_PORT))
            for each in nodes
        ]
        yield _Pair(client, nodes, relays, streams)


@pytest.mark.promise(
    "docs/taking-a-node-away.md",
    "a program that is killed, or a network that is cut, at any message of a move",
)
@pytest.mark.parametrize(("message", "fault"), _CASES)
def test_a_fault_at_a_message_costs_one_batch_at_most(pair: _Pair, message: str, fault: str):
    """There and back: what ends is one batch, and counted; until the commit, nothing ends."""
    for giver in (0, 1):
        begun = time.monotonic()
        pair.move(giver, message, _FAULTS[fault])
        sys.stderr.write(f"{time.monotonic() - begun:.1f} s\n")


def test_a_worker_that_dies_before_it_gets_a_batch_costs_that_one(pair: _Pair):
    """There and back: the node that has taken it counts it, as the giver counts it as given."""
    for giver in (0, 1):
        target = pair.nodes[1 - giver]
        before = int(str(target.migrated()["lost"]))
        pair.move(giver, "commit", _worker_killed)
        assert int(str(target.migrated()["lost"])) - before == pair.relays[1 - giver].batch > 0
