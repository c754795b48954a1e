"""A client of a virtual IP: numbered UDP probes through the bridge, and who answered each of them."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from support.network.namespaces import Node
from support.processes.processes import end
from support.processes.waiting import wait_until

PORT: Final = 7007
_TESTS: Final = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One probe: monotonic seconds of sending and of its answer, and by whom; 0.0 and "" when lost."""

    sent: float
    answered: float
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """What a client saw: all its probes, oldest first."""

    probes: tuple[Probe, ...]

    @property
    def lost(self) -> int:
        """How many probes had no answer."""
        return sum(1 for probe in self.probes if not probe.by)

    @property
    def gap(self) -> float:
        """The longest time in seconds from a lost probe to the next answered one; 0.0 when none was lost."""
        longest, start = 0.0, None
        for probe in self.probes:
            if probe.by:
                longest = max(longest, probe.sent - start if start is not None else 0.0)
                start = None
            elif start is None:
                start = probe.sent
        unfinished = self.probes[-1].sent - start if start is not None else 0.0
        return max(longest, unfinished)

    def since(self, first: int) -> "Outage":
        """Return what was seen from the probe of this number on, as `VipClient.mark` gave it."""
        return Outage(probes=self.probes[first:])

    @property
    def answerers(self) -> list[str]:
        """Who answered, in the order of the probes, each change once."""
        names = [probe.by for probe in self.probes if probe.by]
        return [name for index, name in enumerate(names) if not index or names[index - 1] != name]


def serve(*nodes: Node) -> list[subprocess.Popen[bytes]]:
    """Start an echo server in each node, known by the last part of the node's name."""
    command = [sys.executable, str(Path(__file__).with_name("vip_echo.py"))]
    started = [node.start([*command, short_name(node), str(PORT)]) for node in nodes]
    for node in nodes:
        wait_until(lambda node=node: f":{PORT} " in node.run(["ss", "-Hnul"]), what=f"{node.name} serves")
    return started


def short_name(node: Node) -> str:
    """Return what an echo server of this node calls itself."""
    return node.name.rpartition("-")[2]


class VipClient:
    """A running stream of probes. Use it as a context manager; `stop` says what happened."""

    def __init__(self, node: Node, address: str, *, interval: float = 0.002) -> None:
        """Start probing, one each `interval` seconds."""
        command = ["nsenter", f"--net=/run/netns/{node.name}", "--", sys.executable]
        command += [str(Path(__file__).with_name("vip_probe.py")), address, str(PORT), str(interval)]
        self._process = subprocess.Popen(
            command, cwd=_TESTS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self._ask()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        end(self._process)

    def mark(self) -> int:
        """Return how many probes were sent so far.

        The kernel keeps probes until it knows the MAC: the first ones may be answered long after others.
        """
        return self._ask()[0]

    def wait_for_more(self, number: int) -> None:
        """Wait until this many further probes have been sent."""
        wanted = self.mark() + number
        wait_until(lambda: self.mark() >= wanted, what=f"{number} more probes", timeout=60.0)

    def wait_for_answer_by(self, name: str) -> None:
        """Wait until the last answer was that of the node of this short name."""
        wait_until(lambda: self._ask()[1] == name, what=f"{name} answers", timeout=30.0)

    def stop(self) -> Outage:
        """End probing, and return what happened."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        rows = json.loads(self._process.stdout.read())
        return Outage(probes=tuple(Probe(sent=sent, answered=at, by=by) for sent, at, by in rows))

    def _ask(self) -> tuple[int, str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"\n")
        sent, last = json.loads(self._process.stdout.readline())
        return sent, last
