"""Virtual IPs of both families move again and again, by every planned way, under streams that are checked.

Each byte has to come back, once and in order, on each connection, wherever that lives meanwhile. `E2E_FULL=1`
makes 20 moves under 1,000 connections of each family.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from support.linger.linger_field import PORT
from support.linger.moving_nodes import NAMES, VIPS, MovingNodes, another_release, moving_nodes
from support.linger.rival_nodes import RivalNodes
from support.network.checked_streams import CheckedStreams, Pauses
from support.network.namespaces import Node, Segment

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nft", root=True)]

_FULL: Final = os.environ.get("E2E_FULL") == "1"
_COUNT: Final = 1000 if _FULL else 50  # connections of each family
_PERIOD: Final = 1.0 if _FULL else 0.2
_MORE: Final = _COUNT // 20  # of each family after each move, so that all nodes have some


@pytest.fixture(scope="module")
def release() -> Iterator[Path]:
    """Another release of the package, which an upgraded node runs."""
    with another_release() as made:
        yield made


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """Nodes, the streams through them, and what was seen of each move."""

    nodes: MovingNodes
    streams: CheckedStreams
    release: Path
    seen: list[tuple[str, str, Pauses]]

    def make(self, what: str, move: Callable[[], str]) -> None:
        """Make one move, wait until every stream goes on, and begin some more on the new node."""
        self.streams.pauses()
        name = move()
        self.streams.go_on()
        self.seen.append((what, name, self.streams.pauses()))
        self.fill(name)

    def fill(self, name: str) -> None:
        """Begin a few streams, and as many as there have to be."""
        for vip in VIPS:
            missing = _COUNT - self.streams.report().to.get(vip, 0)
            self.streams.connect(vip, max(_MORE, missing))
        assert self.streams.report().by[name] >= len(VIPS) * _MORE

    # The ways. Some are two moves: away, and back again.

    def move(self) -> None:
        """`vip move`."""
        self.make("vip move", self.nodes.move)

    def reclaim(self) -> None:
        """The node that has moved it away preempts."""
        self.make("vip reclaim", self.nodes.reclaim)

    def priority(self) -> None:
        """A reload makes another node the better one."""
        self.make("priority", self.nodes.raise_priority)

    def upgrade(self) -> None:
        """`leave --wait`, until connections have ended by themselves; then another release comes back."""
        name = self.nodes.active
        self.make("leave --wait", self.nodes.leave)
        self.streams.finish(name)
        self.nodes.stop_empty(name)
        self.make("comes back upgraded", lambda: self.nodes.start(name, release=self.release))

    def stop(self, number: signal.Signals) -> None:
        """The signal, and a start after its connections have ended by themselves."""
        name = self.nodes.active
        self.make(number.name, lambda: self.nodes.tell_to_end(number))
        self.streams.finish(name)
        self.nodes.wait_for_end(name)
        self.make("comes back", lambda: self.nodes.start(name))

    def term(self) -> None:
        """TERM: connections have the time `drain`."""
        self.stop(signal.SIGTERM)

    def usr1(self) -> None:
        """USR1: connections have the time that they need."""
        self.stop(signal.SIGUSR1)


_WAYS: Final = {
    2: (Course.move, Course.reclaim, Course.upgrade),
    3: (Course.move, Course.reclaim, Course.priority, Course.term),
}
_MANY_WAYS: Final = (
    *(*_WAYS[2], *_WAYS[3], Course.move, Course.priority, Course.usr1),
    *(Course.move, Course.reclaim, Course.priority, Course.upgrade, Course.priority, Course.move),
)


@pytest.mark.slow("every planned move, again and again, under streams")
@pytest.mark.promise("docs/virtual-ips.md", "with `linger` no planned move ends a connection")
@pytest.mark.parametrize("count", [2, pytest.param(3, marks=pytest.mark.full("the same with one more"))])
def test_no_planned_move_ends_a_connection(count: int, release: Path):
    """Whatever way the addresses move, each byte comes back; `leave --wait` waits for its connections."""
    with moving_nodes(count) as (client, nodes), CheckedStreams(client, port=PORT, period=_PERIOD) as streams:
        course = Course(nodes=nodes, streams=streams, release=release, seen=[])
        course.fill(nodes.active)
        for way in _MANY_WAYS if _FULL else _WAYS[count]:
            way(course)
        said = streams.report()
        kept = nodes.connections()
    for what, name, pauses in course.seen:
        sys.stderr.write(f"{what} -> {name}: {_milliseconds(pauses)}\n")
    sys.stderr.write(f"{said}, kept {kept}\n")
    assert len(course.seen) == (20 if _FULL else count + 2)
    assert said.ended == {}
    assert min(said.to.values()) >= _COUNT


@pytest.mark.slow("whole appliances on a segment of their own")
def test_what_the_kernel_forwards_goes_on():
    """Over reloads, kills of program and supervisord, and moves: rules stay, and packets find their node."""
    with (
        moving_nodes(2, forward="kernel") as (client, nodes),
        CheckedStreams(client, port=PORT, period=_PERIOD) as streams,
    ):
        for vip in VIPS:
            streams.connect(vip, _COUNT)
        _disturb(nodes, "one", streams)
        assert nodes.move() == "two"
        streams.go_on()
        _disturb(nodes, "one", streams)
        _disturb(nodes, "two", streams)
        for vip in VIPS:
            streams.connect(vip, _MORE)
        assert nodes.reclaim() == "one"
        streams.go_on()
        said = streams.report()
    assert said.ended == {}
    assert said.by == {"one": len(VIPS) * _COUNT, "two": len(VIPS) * _MORE}


def _disturb(nodes: MovingNodes, name: str, streams: CheckedStreams) -> None:
    """Reload a node, and kill its `forward` and its supervisord; all streams go on after each of it."""
    given = nodes.nodes[name].appliance
    nodes.reload(name, log={"level": "debug"})
    streams.go_on()
    given.wait_for_restart("forward", given.kill("forward"))
    streams.go_on()
    nodes.crash(name)
    streams.go_on()


@pytest.mark.slow("whole appliances on a segment of their own")
@pytest.mark.needs("keepalived", "haproxy")
def test_keepalived_and_haproxy_end_them_all():
    """The same streams through the same move: the node that takes over resets each of them."""
    with Segment() as segment:
        rivals = RivalNodes(segment, NAMES[:2])
        client: Node = segment.node("client")
        with rivals, CheckedStreams(client, port=PORT, period=_PERIOD, returns=True) as streams:
            for vip in VIPS:
                streams.connect(vip, _COUNT)
            assert streams.report().by == {"one": len(VIPS) * _COUNT}
            streams.pauses()
            rivals.stop("one")
            streams.go_on()
            pauses, said = streams.pauses(), streams.report()
    sys.stderr.write(f"{_milliseconds(pauses)}; {said}\n")
    assert said.by == {"two": len(VIPS) * _COUNT}
    assert sum(said.ended.values()) >= len(VIPS) * _COUNT


def _milliseconds(pauses: Pauses) -> str:
    return f"longest pause {pauses.longest * 1000:.0f} ms, median {pauses.median * 1000:.0f} ms"
