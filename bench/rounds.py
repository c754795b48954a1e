"""Interleaved rounds: in each one every proxy does every measure, in turn, so that they share the noise."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from support.nginx import Nginx, nginx

from bench import measures, proxies
from bench.measures import Effort, Numbers
from bench.proxies import Proxy, Start

Results = dict[str, dict[str, list[float]]]
"""Numbers by measure and by proxy, one for each round; the same index is the same round."""

RIVAL = "haproxy"
SPLICING = "haproxy+splice"
OURS = "appliance"
_STARTS: dict[str, Start] = {RIVAL: proxies.haproxy, OURS: proxies.worker}


def measure(*, rounds: int, effort: Effort, say: Callable[[str], None]) -> Results:
    """Return every number of every round; `say` hears of progress."""
    results: Results = defaultdict(lambda: defaultdict(list))
    with nginx() as server:
        _make_body(server)
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            # Who comes first changes with each round: the second may profit from a warm cache.
            order = list(_STARTS) if number % 2 == 0 else list(reversed(_STARTS))
            for name, numbers in _round(server, order, effort):
                for measure_name, value in numbers.items():
                    results[measure_name][name].append(value)
    return results


def _round(server: Nginx, order: Sequence[str], effort: Effort) -> Iterator[tuple[str, Numbers]]:
    with ExitStack() as stack:
        running = {name: stack.enter_context(_STARTS[name](server.port)) for name in order}
        splicing = stack.enter_context(proxies.haproxy_splice(server.port))
        for take in (measures.short, measures.kept, measures.bulk):
            for name, proxy in running.items():
                yield name, take(proxy, effort)
        yield SPLICING, measures.bulk(splicing, effort)
        yield from _added_latency(server, running, effort)
    for name in order:
        with _STARTS[name](server.port) as proxy:
            yield name, measures.idle(proxy, effort)


def _added_latency(server: Nginx, running: dict[str, Proxy], effort: Effort) -> Iterator[tuple[str, Numbers]]:
    ports = {"direct": server.port, **{name: proxy.port for name, proxy in running.items()}}
    taken = measures.latencies(ports, effort)
    direct = taken.pop("direct")
    for name, numbers in taken.items():
        yield name, {f"added {key}": value - direct[key] for key, value in numbers.items()}


def _make_body(server: Nginx) -> None:
    with (server.www / "bulk").open("wb") as file:
        file.truncate(measures.BULK_BYTES)
