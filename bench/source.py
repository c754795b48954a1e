"""What `source: virtual-ip` costs: one worker that connects from a virtual IP beside one that does not."""

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from support.network.ports import accepts, free_port
from support.peers.nginx import nginx
from support.processes.waiting import wait_until
from support.values.snapshots import virtual_router
from support.worker.lone_worker import lone_worker

from appliance.model.snapshot.pools import SourceAddress
from bench import measures, rounds
from bench.measures import Effort
from bench.proxies import Proxy, snapshot_of
from bench.rounds import Results
from bench.table import ratio

_KINDS: Final = {each.value: each for each in (SourceAddress.NODE, SourceAddress.VIRTUAL_IP)}
_PORTS: Final = (32768, 60999)
"""Linux's own ports: the kernel chooses among them, as the manual says to set it up."""


def measure(package: Path | None, *, count: int, effort: Effort, say: Callable[[str], None]) -> Results:
    """Return the numbers of both kinds, in interleaved rounds and slices."""
    results: Results = defaultdict(lambda: defaultdict(list))
    with nginx() as server:
        for number in range(count):
            say(f"round {number + 1} of {count}")
            order = _KINDS if number % 2 == 0 else dict(reversed(_KINDS.items()))
            with contextlib.ExitStack() as stack:
                start = partial(_worker, server.port, package)
                running = {name: stack.enter_context(start(kind)) for name, kind in order.items()}
                for name, numbers in rounds.in_slices(measures.short, running, effort):
                    for what, value in numbers.items():
                        results[what][name].append(value)
    return results


@contextlib.contextmanager
def _worker(server_port: int, package: Path | None, kind: SourceAddress) -> Iterator[Proxy]:
    """Run a worker whose clients come by a virtual IP, which is that of loopback."""
    port = free_port()
    made = snapshot_of(port, server_port)
    pool = replace(made.pools[0], source=kind, source_ports=_PORTS)
    made = replace(made, pools=(pool,), virtual_routers=(virtual_router(addresses=("127.0.0.1/8",)),))
    with lone_worker(made, package=package) as worker:
        wait_until(lambda: accepts(port), what="the worker accepts")
        yield Proxy(name=kind.value, port=port, pid=worker.pid)


def markdown(results: Results) -> str:
    """Return the table: the medians of both, and median [min-max] of the ratio within a round."""
    lines = [f"| measure | {' | '.join(_KINDS)} | ratio |", "|---|---|---|---|"]
    for what, by_kind in results.items():
        node, virtual = (by_kind[name] for name in _KINDS)
        lines.append(f"| {what} | {median(node):.3g} | {median(virtual):.3g} | {ratio(node, virtual)} |")
    return "\n".join(lines) + "\n"
