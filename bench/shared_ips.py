"""What shared IPs cost, and how fast they are withdrawn: ours, beside the speaker or the direct path alone.

Nodes, a router with ECMP routes and a client in network namespaces. How long a change takes is read from the
times of `ip monitor` at the router, so that no poll adds to it.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final, Self

from support.announce.routers import BirdRouter, FrrRouter, Router
from support.announce.shared_node import ADDRESS, NODES_ASN, SharedNode, config, neighbors
from support.linger.linger_field import PORT
from support.linger.shared_field import SHARED, shared_field
from support.network.namespaces import Node, Segment
from support.processes.processes import cpu_seconds, kill, proportional
from support.processes.waiting import wait_until
from support.run import tools

from appliance.announce import bird_control
from bench.table import ratio

_WITHDRAWN: Final = "verdict to withdrawn, {}, ms"
_DEAD: Final = "crash to left out, {}, BFD 3 x 100 ms, ms"
_STRAYS: Final = "MB/s there and back, {}"
_NEW: Final = "processor us per new connection, {} nodes"
_EVENTS: Final = "route changes at the router, kill -9 of {}"
_MEMORY: Final = "MB PSS, announce and BIRD"
_BY_HAND: Final = 3
_SECONDS: Final = 2.0
_CHANGE: Final = re.compile(rf"^\[([^]]+)\] (?:Deleted )?{ADDRESS} ", re.MULTILINE)
_STREAMS: Final = """
import select, socket, sys, time
open_ = [socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=10) for _ in range(8)]
piece = bytes(1 << 14)
for each in open_:
    each.recv(1)
    each.setblocking(False)
owed = dict.fromkeys(open_, 0)
print("open", flush=True)
for line in sys.stdin:
    got, end = 0, time.monotonic() + float(line)
    begun = time.monotonic()
    while time.monotonic() < end:
        full, free, _ = select.select(open_, [each for each in open_ if owed[each] < 1 << 17], [], 1)
        for each in full:
            read = len(each.recv(1 << 17)) or sys.exit("ended")
            owed[each] -= read
            got += read
        for each in free:
            owed[each] += each.send(piece)
    print(got / (time.monotonic() - begun) / 1e6, flush=True)
"""
_CONNECTIONS: Final = """
import socket, sys, time
count, end = 0, time.monotonic() + float(sys.argv[3])
while time.monotonic() < end:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=10) as connection:
        connection.recv(100)
    count += 1
print(count)
"""

Results = dict[str, tuple[str, list[float], str, list[float]]]
"""By measure: what it is compared with, its figures, the target, and our figures, one for each round."""


def measure(*, rounds: int, say: Callable[[str], None]) -> Results:
    """Return the figures of every round; `say` hears of progress."""
    results: Results = {}
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}")
        rows = (*_changes(), *_kills(), *_strays(), *_new_connections())
        for name, beside, theirs, target, ours in rows:
            found = results.setdefault(name, (beside, [], target, []))
            found[1].extend([theirs] if theirs else [])
            found[3].append(ours)
    return results


def markdown(results: Results) -> str:
    """Return the table: minimum-median-maximum of both, and median [min-max] of the ratio within a round."""
    lines = ["| measure | beside | | appliance | ratio | target |", "|---|---|---|---|---|---|"]
    for name, (beside, theirs, target, ours) in results.items():
        shown = ratio(theirs, ours) if theirs else ""
        cells = [name, beside, _spread(theirs), _spread(ours), shown, _verdict(target, theirs, ours)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


_Row = tuple[str, str, float, str, float]


def _spread(values: list[float]) -> str:
    if not values:
        return ""
    return "-".join(f"{each:,.0f}" for each in (min(values), median(values), max(values)))


def _verdict(target: str, theirs: list[float], ours: list[float]) -> str:
    """Return whether a target is reached: one with a unit is of our figure, others are of the ratio."""
    if theirs and min(theirs) <= 0:
        return f"{target}: lost in noise"
    sign, limit, *unit = target.split()
    found = median(ours if unit else [mine / other for other, mine in zip(theirs, ours, strict=True)])
    reached = found <= float(limit) if sign == "<=" else found >= float(limit)
    return f"{target}: {'reached' if reached else 'missed'}"


# Changes at the router


def _changes() -> Iterator[_Row]:
    for kind in (BirdRouter, FrrRouter):
        name = kind.__name__.removesuffix("Router").upper()
        with _site(kind) as (router, one, other), _Monitor(router.node) as monitor:
            by_hand = median(_remove(router, one, other, monitor) for _ in range(_BY_HAND))
            dead = _isolate(router, one, other, monitor)
            since = len(monitor.text())
            one.server.kill()
            router.wait_for(ADDRESS, other.node)
            down = one.appliance.wait_for_event("server-down")
            verdict = datetime.fromisoformat(str(down["timestamp"])).timestamp()
            ours = monitor.changed_at(since) - verdict
        yield _WITHDRAWN.format(name), "route removed by hand", by_hand * 1000, "<= 150 ms", ours * 1000
        yield _DEAD.format(name), "", 0.0, "<= 450 ms", dead * 1000


@contextmanager
def _site(kind: Callable[..., Router]) -> Iterator[tuple[Router, SharedNode, SharedNode]]:
    with ExitStack() as stack:
        segment = stack.enter_context(Segment())
        machine, *places = (segment.node(name) for name in ("router", "lb-0", "lb-1"))
        router = stack.enter_context(kind(machine, [each.address for each in places], asn=NODES_ASN))
        given = config([], bgp={"neighbors": neighbors([machine.address], interval="100ms")})
        one, other = (stack.enter_context(SharedNode(each, each.name, given)) for each in places)
        router.wait_for(ADDRESS, one.node, other.node)
        yield router, one, other


def _kills() -> Iterator[_Row]:
    """Yield what the router sees of programs that are killed, and what they hold."""
    with _site(FrrRouter) as (router, one, other), _Monitor(router.node) as monitor:
        appliance = one.appliance
        wait_until(lambda: _bfd(one) == "Up", what="BFD is up")
        bird = bird_control.process(appliance.paths.bird_control)
        announce = appliance.program_pid("announce")
        assert announce
        held = sum(map(proportional, (announce, bird))) / 1e6
        since = len(monitor.text())
        appliance.wait_for_restart("announce", appliance.kill("announce"))
        wait_until(lambda: one.state() == "serving", what="the next announce continues")
        yield _EVENTS.format("announce"), "", 0.0, "<= 0 changes", monitor.changes(since)
        since = len(monitor.text())
        kill(bird)
        wait_until(
            lambda: bird_control.process(appliance.paths.bird_control) not in (0, bird), what="BIRD is back"
        )
        wait_until(lambda: _bfd(one) == "Up", what="the session is back", timeout=60.0)
        yield _EVENTS.format("BIRD"), "", 0.0, "<= 0 changes", monitor.changes(since)
        router.wait_for(ADDRESS, one.node, other.node)
    yield _MEMORY, "", 0.0, "<= 40 MB", held


def _bfd(node: SharedNode) -> str:
    found = node.status().get("neighbors")
    return str(found[0]["bfd"]) if isinstance(found, list) and found else ""


def _remove(router: Router, one: SharedNode, other: SharedNode, monitor: "_Monitor") -> float:
    """Remove the route that BIRD announces, as fast as anybody could; return the seconds it took."""
    since, begun = len(monitor.text()), time.time()
    one.node.ip("route", "delete", ADDRESS, "table", "198")
    router.wait_for(ADDRESS, other.node)
    took = monitor.changed_at(since) - begun
    one.node.ip("route", "replace", ADDRESS, "dev", "lo", "table", "198", "proto", "248")
    router.wait_for(ADDRESS, one.node, other.node)
    return took


def _isolate(router: Router, one: SharedNode, other: SharedNode, monitor: "_Monitor") -> float:
    since, begun = len(monitor.text()), time.time()
    one.node.isolate()
    router.wait_for(ADDRESS, other.node)
    took = monitor.changed_at(since) - begun
    one.node.rejoin()
    router.wait_for(ADDRESS, one.node, other.node)
    return took


class _Monitor:
    """Changes of a node's routes with their times. Use it as a context manager."""

    def __init__(self, node: Node) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # closed by __exit__
        words = [tools.path("ip") or "ip", "-tshort", "monitor", "route"]
        self._process = node.start(words, output=self._file, environment={"TZ": "UTC"})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._file.close()

    def text(self) -> str:
        """Return what it has said so far."""
        return os.pread(self._file.fileno(), 1 << 20, 0).decode()

    def changes(self, since: int) -> int:
        """Return how many changes of routes for the address there were after so much text."""
        return len(_CHANGE.findall(self.text(), since))

    def changed_at(self, since: int) -> float:
        """Return when the routes for the address changed first after so much text."""
        found = wait_until(lambda: _CHANGE.search(self.text(), since), what="the change is told")
        assert found is not None
        return datetime.fromisoformat(found[1]).replace(tzinfo=UTC).timestamp()


# Strays


def _strays() -> Iterator[_Row]:
    for name, racks in (("to another node", False), ("to another node through a VXLAN", True)):
        with shared_field(2, racks=racks, vxlan={} if racks else None) as field:
            field.route("two")
            with field.client.inside():
                streams = subprocess.Popen(
                    [sys.executable, "-c", _STREAMS, SHARED, str(PORT)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            assert streams.stdout is not None
            assert streams.stdin is not None
            with streams, streams.stdin, streams.stdout:
                streams.stdout.readline()
                rates: dict[str, list[float]] = defaultdict(list)
                for node in ("two", "one", "one", "two"):
                    field.route(node)
                    streams.stdin.write(f"{_SECONDS}\n")
                    streams.stdin.flush()
                    rates[node].append(float(streams.stdout.readline()))
        direct, led = sum(rates["two"]) / 2, sum(rates["one"]) / 2
        yield _STRAYS.format(name), "direct", direct, ">= 0.8", led


# New connections


def _new_connections() -> Iterator[_Row]:
    one = _cost(1)
    for count in (2, 3):
        yield _NEW.format(count), "one node", one, "<= 1.11", _cost(count)


def _cost(count: int) -> float:
    """Return the processor time of all programs of all nodes for one new connection, microseconds.

    What they take at rest is left out: the more connections there are, the less of it is one connection's.
    The router uses one node after the other: workers of more nodes than there are processors would displace
    each other's caches at each connection, which nodes of their own machines do not.
    """
    seconds = 2 * _SECONDS
    with shared_field(count) as field:
        nodes = field.machines.values()
        begun, before = time.monotonic(), sum(map(_used, nodes))
        time.sleep(seconds)
        rest = (sum(map(_used, nodes)) - before) / (time.monotonic() - begun)
        begun, before = time.monotonic(), sum(map(_used, nodes))
        made = 0
        for name in field.machines:
            field.route(name)
            words = (_CONNECTIONS, SHARED, str(PORT), str(seconds / count))
            made += int(field.client.run([sys.executable, "-c", *words]))
        used = sum(map(_used, nodes)) - before
        return (used - rest * (time.monotonic() - begun)) / made * 1e6


def _used(node: Node) -> float:
    """Return the processor seconds of the appliance's programs in a node."""
    pids = subprocess.run(["ip", "netns", "pids", node.name], capture_output=True, text=True, check=True)
    return sum(cpu_seconds(int(each)) for each in pids.stdout.split() if _is_ours(int(each)))


def _is_ours(pid: int) -> bool:
    return b"echoer" not in Path(f"/proc/{pid}/cmdline").read_bytes()
