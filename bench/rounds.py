"""Interleaved rounds: in each one every proxy does every measure, in turn, so that they share the noise."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import mean

from support.peers.nginx import Nginx, nginx

from bench import measures, proxies
from bench.measures import Effort, Numbers
from bench.proxies import Proxy, Start

Results = dict[str, dict[str, list[float]]]
"""Numbers by measure and by proxy, one for each round; the same index is the same round."""

RIVAL = "haproxy"
SPLICING = "haproxy+splice"
OURS = "appliance"
COMPILED = "compiled"
ANOTHER = "another haproxy"
STREAM = "nginx stream"


def contenders(package: Path | None) -> dict[str, Start]:
    """Return what is measured; `package` is the directory of our compiled package, if it takes part.

    The variable HAPROXY names another HAProxy than Debian's, which then takes part too.
    """
    starts: dict[str, Start] = {RIVAL: proxies.haproxy, OURS: proxies.worker, STREAM: proxies.nginx_stream}
    if binary := os.environ.get("HAPROXY"):
        starts[ANOTHER] = partial(proxies.haproxy, binary=binary, name=ANOTHER)
    if package is not None:
        starts[COMPILED] = partial(proxies.worker, package=package, name=COMPILED)
    return starts


def measure(starts: dict[str, Start], *, rounds: int, effort: Effort, say: Callable[[str], None]) -> Results:
    """Return every number of every round; `say` hears of progress."""
    results: Results = defaultdict(lambda: defaultdict(list))
    with nginx() as server:
        _make_body(server)
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            # Who comes first changes with each round: the second may profit from a warm cache.
            order = dict(starts if number % 2 == 0 else reversed(starts.items()))
            for name, numbers in _round(server, order, effort):
                for measure_name, value in numbers.items():
                    results[measure_name][name].append(value)
    return results


def _round(server: Nginx, starts: dict[str, Start], effort: Effort) -> Iterator[tuple[str, Numbers]]:
    with ExitStack() as stack:
        running = {name: stack.enter_context(start(server.port)) for name, start in starts.items()}
        splicing = stack.enter_context(proxies.haproxy_splice(server.port))
        for take in (measures.short, measures.kept):
            yield from in_slices(take, running, effort)
        for name, proxy in running.items():
            yield name, measures.bulk(proxy, effort)
        yield SPLICING, measures.bulk(splicing, effort)
        yield from _added_latency(server, running, effort)
    for name, start in starts.items():
        with start(server.port) as proxy:
            yield name, measures.idle(proxy, effort)


def in_slices(
    take: Callable[[Proxy, Effort], Numbers], running: dict[str, Proxy], effort: Effort
) -> Iterator[tuple[str, Numbers]]:
    """Measure in short slices, in turn, and give the means: a noisy second hits more than one proxy."""
    taken: dict[str, list[Numbers]] = {name: [] for name in running}
    for _ in range(effort.slices):
        for name, proxy in running.items():
            taken[name].append(take(proxy, effort))
    for name, numbers in taken.items():
        yield name, {key: mean(each[key] for each in numbers) for key in numbers[0]}


def _added_latency(server: Nginx, running: dict[str, Proxy], effort: Effort) -> Iterator[tuple[str, Numbers]]:
    ports = {"direct": server.port, **{name: proxy.port for name, proxy in running.items()}}
    taken = measures.latencies(ports, effort)
    direct = taken.pop("direct")
    for name, numbers in taken.items():
        yield name, {f"added {key}": value - direct[key] for key, value in numbers.items()}


def _make_body(server: Nginx) -> None:
    with (server.www / "bulk").open("wb") as file:
        file.truncate(measures.BULK_BYTES)
