"""Where virtual routers meet: two nodes and a client on one segment, and a capture of all that they say."""

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from support.network.capture import Capture
from support.network.namespaces import Node, Segment
from support.processes.processes import end
from support.processes.waiting import wait_until
from support.vrrp.vip_client import short_name
from support.vrrp.vrrp_node import VrrpNode, router

from appliance.model.snapshot.virtual_router import VirtualRouter

VIP: Final = "192.0.2.100"
VIP6: Final = "fd00::100"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """`one` and `two` are the routers' nodes, `client` a bystander; `capture` has seen everything."""

    segment: Segment
    one: Node
    two: Node
    client: Node
    capture: Capture

    def holders(self, address: str = VIP) -> list[Node]:
        """Return the nodes that have the address."""
        return [node for node in (self.one, self.two) if node.holds(address)]

    def wait_for_holder(self, node: Node, address: str = VIP) -> None:
        """Wait until this node has the address, and the other one does not."""
        wait_until(
            lambda: [short_name(each) for each in self.holders(address)] == [short_name(node)],
            what=f"only {node.name} has {address}",
            timeout=20.0,
        )

    def wait_for_adverts(self, number: int, **fields: object) -> None:
        """Wait for this many further advertisements with these fields, as a measure of time on the wire."""
        wanted = len(self.capture.adverts(**fields)) + number
        wait_until(
            lambda: len(self.capture.adverts(**fields)) >= wanted,
            what=f"{number} more advertisements with {fields}",
            timeout=30.0,
        )

    def senders(self, *, since: int = 0) -> set[str]:
        """Return who has sent advertisements of a priority above 0 after the first `since` packets."""
        packets = set(self.capture.read()[since:])
        return {each.source for each in self.capture.adverts() if each.priority and each in packets}


@contextlib.contextmanager
def field() -> Iterator[Field]:
    """Make a field; it is gone at the end, with what runs in it."""
    with Segment() as segment:
        one, two, client = (segment.node(name) for name in ("one", "two", "client"))
        with Capture(segment) as capture:
            yield Field(segment=segment, one=one, two=two, client=client, capture=capture)


@contextlib.contextmanager
def pair(ground: Field, high: VirtualRouter, low: VirtualRouter) -> Iterator[tuple[VrrpNode, VrrpNode]]:
    """Run two of ours, one after the other: the first one is active on `one` when the second one starts."""
    with VrrpNode(ground.one, high) as active:
        active.wait_for("active")
        with VrrpNode(ground.two, low) as backup:
            backup.wait_for("backup")
            yield active, backup


@contextlib.contextmanager
def agreed(ground: Field, **changes: object) -> Iterator[tuple[VrrpNode, VrrpNode]]:
    """Run a `pair` of priorities 150 and 100, the same in all else, whose backup has heard the active."""
    high, low = (router(priority=each, **changes) for each in (150, 100))
    with pair(ground, high, low) as (active, backup):
        wait_until(lambda: backup.status()["heard"], what="the active is heard")
        yield active, backup


class AddressMonitor:
    """`ip monitor address` in a node: every address that came or went. Use it as a context manager."""

    def __init__(self, node: Node) -> None:
        """Start it; on return every later change is seen."""
        self._node = node
        self._marks = 0
        self._directory = tempfile.TemporaryDirectory(prefix="lb-monitor-")
        self._file = Path(self._directory.name) / "lines"
        with self._file.open("wb") as output:
            self._process = subprocess.Popen(
                ["nsenter", f"--net=/run/netns/{node.name}", "--", "ip", "-o", "monitor", "address"],
                stdin=subprocess.DEVNULL,
                stdout=output,
            )
        # It says nothing when it listens: change something of no consequence until it tells.
        wait_until(self._sees, what="the monitor sees")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        end(self._process)
        self._directory.cleanup()

    def came(self, address: str) -> int:
        """Return how often the address was added or refreshed."""
        return sum(1 for line in self._changes(address) if not line.startswith("Deleted"))

    def went(self, address: str) -> int:
        """Return how often the address was deleted."""
        return sum(1 for line in self._changes(address) if line.startswith("Deleted"))

    def _changes(self, address: str) -> list[str]:
        """Return what was told of an address by now: on a busy machine that is later than the change."""
        self._marks += 1
        mark = f"127.9.{self._marks // 250}.{self._marks % 250 + 1}"
        self._touch(mark)
        wait_until(lambda: self._about(mark), what="the monitor has told everything")
        return self._about(address)

    def _about(self, address: str) -> list[str]:
        return [line for line in self._file.read_text().splitlines() if f" {address}/" in line]

    def _sees(self) -> bool:
        self._touch("127.10.9.9")
        return bool(self._about("127.10.9.9"))

    def _touch(self, address: str) -> None:
        self._node.ip("address", "add", f"{address}/32", "dev", "lo")
        self._node.ip("address", "delete", f"{address}/32", "dev", "lo")
