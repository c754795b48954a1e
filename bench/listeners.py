"""How workers share an address: one accept queue for all, one for each, or one for each, kept by the master.

Three questions: how evenly new connections are spread and what they cost; how many calls of accept find
nothing; and what becomes of the connections in the accept queues when workers are replaced. For the last one
the former workers are halted, so that they accept nothing, clients connect and send their requests, new
workers start for the same address, and the former ones are killed: what a reload comes upon at its worst.
"""

import contextlib
import os
import re
import signal
import socket
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from statistics import median
from typing import Final

from support.network.ports import accepts, free_port
from support.peers.nginx import nginx
from support.processes.processes import kill
from support.processes.waiting import wait_until
from support.run import tools
from support.worker import lone_worker

from bench import measures, proxies
from bench.cores import accepted
from bench.measures import Effort
from bench.proxies import Proxy

SHARED: Final = "one queue"
OWN: Final = "own queue"
KEPT: Final = "own queue, kept"
_KINDS: Final = (SHARED, OWN, KEPT)
_COUNTS: Final = (1, 2, 4)
_CLIENTS: Final = (32, 1000)
_WAITING: Final = 200

Rows = dict[tuple[str, int], dict[str, list[float]]]
"""By what is measured and by how many workers: the numbers of each kind, one for each round."""


def measure(
    package: Path | None,
    *,
    rounds: int,
    effort: Effort,
    say: Callable[[str], None],
    counts: tuple[int, ...] = _COUNTS,
    tracing: bool = True,
) -> Rows:
    """Return what workers with each kind of listener made, in interleaved rounds.

    Without `tracing` no calls of accept are counted, which needs the right to trace processes.
    """
    rows: Rows = defaultdict(lambda: defaultdict(list))
    with nginx() as server:
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            for count in counts:
                for kind in _KINDS if number % 2 == 0 else reversed(_KINDS):
                    with _workers(server.port, count, kind, package) as proxy:
                        for what, value in _numbers(proxy, effort):
                            rows[what, count][kind].append(value)
                        if tracing:
                            in_vain = 100 * _in_vain(proxy)
                            rows["accepts that find nothing, %", count][kind].append(in_vain)
            for kind in _KINDS:
                lost = _lost_by_a_reload(server.port, kind, package)
                rows[f"lost of {_WAITING} in the queues, reload", 2][kind].append(lost)
    return rows


@contextlib.contextmanager
def _workers(server_port: int, count: int, kind: str, package: Path | None) -> Iterator[Proxy]:
    port = free_port()
    with ExitStack() as stack:
        made = stack.enter_context(_generation(_Place(port, server_port, count, kind), package))
        wait_until(lambda: accepts(port), what="the workers accept")
        yield Proxy(name=kind, port=port, pid=made[0].pid, workers=tuple(made))


class _Place:
    """An address, and its listeners: one that is made once, or one for each worker that is made with it."""

    def __init__(self, port: int, server_port: int, count: int, kind: str) -> None:
        self.count, self.kind = count, kind
        # A worker with a listener of its own accepts as one that is alone.
        self.snapshot = proxies.snapshot_of(port, server_port, count=1 if kind == OWN else count)
        self._kept: lone_worker.Listeners | None = None

    def listeners(self, stack: ExitStack) -> lone_worker.Listeners:
        """Return the listeners of the next worker; `stack` closes our copies."""
        if self.kind == OWN:
            return lone_worker.open_listeners(self.snapshot, stack, reuse_port=True)
        if self._kept is None:
            queues = self.count if self.kind == KEPT else 1
            self._kept = lone_worker.open_listeners(self.snapshot, stack, queues=queues)
        return self._kept


@contextlib.contextmanager
def _generation(
    place: _Place, package: Path | None, *, ours: ExitStack | None = None
) -> Iterator[list[lone_worker.LoneWorker]]:
    """Run the workers of a place; our copies of listeners are closed, or kept open in `ours`."""
    with ExitStack() as stack, ExitStack() as copies:
        yielded = []
        for index in range(place.count):
            listeners = place.listeners(ours if ours is not None and place.kind != OWN else copies)
            own_index = 0 if place.kind == OWN else index
            yielded.append(
                stack.enter_context(
                    lone_worker.accepting(place.snapshot, listeners, package, index=own_index)
                )
            )
        copies.close()
        yield yielded


def _numbers(proxy: Proxy, effort: Effort) -> Iterator[tuple[str, float]]:
    for clients in _CLIENTS:
        before = accepted(proxy)
        for name, value in measures.short(proxy, effort, at_once=clients).items():
            yield f"{name}, {clients} clients", value
        if len(proxy.workers) > 1:
            taken = [after - earlier for after, earlier in zip(accepted(proxy), before, strict=True)]
            yield (
                f"busiest worker above the mean in %, {clients} clients",
                100 * (max(taken) / (sum(taken) / len(taken)) - 1),
            )


def _in_vain(proxy: Proxy) -> float:
    """Return the share of accept4 calls that return EAGAIN, with 32 clients at a time."""
    strace = tools.path("strace")
    assert strace, "strace is missing: make debian"
    calls = failed = 0
    with tempfile.TemporaryDirectory(prefix="lb-strace-") as directory:
        log = Path(directory) / "calls"
        pids = [word for worker in proxy.workers for word in ("-p", str(worker.pid))]
        tracer = subprocess.Popen(
            [strace, "-f", "-e", "trace=accept4", "-o", str(log), *pids], stderr=subprocess.DEVNULL
        )
        try:
            wait_until(lambda: all(_traced(each.pid) for each in proxy.workers), what="strace is attached")
            measures.burst(proxy.port, connections=960, at_once=32)
        finally:
            tracer.terminate()
            tracer.wait()
        for line in log.read_text().splitlines():
            if "accept4(" in line or "accept4 resumed" in line:
                calls += "unfinished" not in line
                failed += "EAGAIN" in line
    assert calls, "strace has seen no accept4"
    return failed / calls


def _traced(pid: int) -> bool:
    return not re.search(r"^TracerPid:\s+0$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)


def _lost_by_a_reload(server_port: int, kind: str, package: Path | None) -> int:
    """Return how many of the waiting clients are not answered by the next generation of two workers."""
    port = free_port()
    place = _Place(port, server_port, 2, kind)
    with ExitStack() as stack, ExitStack() as ours:
        former = stack.enter_context(_generation(place, package, ours=ours))
        wait_until(lambda: accepts(port), what="the workers accept")
        for worker in former:
            os.kill(worker.pid, signal.SIGSTOP)
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10.0))
            for _ in range(_WAITING)
        ]
        for client in clients:
            client.sendall(measures.REQUEST)
        stack.enter_context(_generation(place, package, ours=ours))
        for worker in former:
            kill(worker.pid)
        return sum(not _answered(client) for client in clients)


def _answered(client: socket.socket) -> bool:
    with suppress(OSError):
        return b"nginx" in client.recv(4096)
    return False


def markdown(rows: Rows) -> str:
    """Return the table: median and range of each kind, in the order of what is measured."""
    lines = [f"| measure | workers | {' | '.join(_KINDS)} |", "|---|---|" + "---|" * len(_KINDS)]
    for (name, count), by_kind in rows.items():
        cells = " | ".join(_three(by_kind[kind]) for kind in _KINDS)
        lines.append(f"| {name} | {count} | {cells} |")
    return "\n".join(lines) + "\n"


def _three(values: list[float]) -> str:
    low, middle, high = (_text(value) for value in (min(values), median(values), max(values)))
    return f"{low}-{middle}-{high}"


def _text(value: float) -> str:
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"
