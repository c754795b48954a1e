"""Several cores: as many of our workers as HAProxy has threads, and how evenly connections are spread."""

import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median

from support.peers.nginx import nginx

from bench import measures, proxies
from bench.measures import Effort
from bench.proxies import Proxy, Start

_COUNTS = (1, 2, 4)
_CLIENTS = (32, 1000)

Rows = dict[tuple[str, int], dict[str, list[float]]]
"""By what is measured and by how many threads or workers: the numbers of each proxy, one for each round."""


def measure(package: Path, *, rounds: int, effort: Effort, say: Callable[[str], None]) -> Rows:
    """Return what each number of threads and workers made, in interleaved rounds."""
    rows: Rows = defaultdict(lambda: defaultdict(list))
    with nginx() as server:
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            for count in _COUNTS:
                with ExitStack() as stack:
                    starts: list[Start] = [
                        partial(proxies.haproxy, threads=count),
                        partial(proxies.several, count=count, package=package),
                    ]
                    running = [stack.enter_context(start(server.port)) for start in starts]
                    for proxy in running if number % 2 == 0 else reversed(running):
                        _take(proxy, count, rows, effort)
    return rows


def _take(proxy: Proxy, count: int, rows: Rows, effort: Effort) -> None:
    for clients in _CLIENTS:
        before = accepted(proxy)
        for name, value in measures.short(proxy, effort, at_once=clients).items():
            rows[f"{name}, {clients} clients", count][proxy.name].append(value)
        if len(proxy.workers) > 1:
            taken = [after - earlier for after, earlier in zip(accepted(proxy), before, strict=True)]
            above = max(taken) / (sum(taken) / len(taken)) - 1
            rows[f"busiest worker above the mean, {clients} clients", count][proxy.name].append(above)
    for name, value in measures.kept(proxy, effort).items():
        rows[name, count][proxy.name].append(value)


def accepted(proxy: Proxy) -> list[int]:
    """Return how many connections each worker has accepted so far."""
    time.sleep(0.5)  # workers write their boards a few times a second
    return [sum(each.total for each in worker.board().frontends) for worker in proxy.workers]


def markdown(rows: Rows) -> str:
    """Return the table: medians, and the median of the ratios within a round."""
    lines = ["| measure | threads, workers | HAProxy | compiled | ratio |", "|---|---|---|---|---|"]
    for (name, count), by_proxy in rows.items():
        ours, theirs = by_proxy["appliance"], by_proxy.get("haproxy")
        if theirs is None:
            lines.append(f"| {name} | {count} | | {median(ours):.0%} | |")
            continue
        ratio = median(mine / other for mine, other in zip(ours, theirs, strict=True))
        cells = [f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for value in map(median, (theirs, ours))]
        lines.append(f"| {name} | {count} | {cells[0]} | {cells[1]} | {ratio:.2f} |")
    return "\n".join(lines) + "\n"
