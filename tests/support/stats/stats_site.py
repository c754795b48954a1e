"""An appliance with the program stats, and how its counters are read."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from support.network.ports import free_port
from support.peers.cluster import Cluster, Config, cluster
from support.processes.waiting import wait_until
from support.stats.haproxy_clients import get, socket_answer

Sample = tuple[str, frozenset[tuple[str, str]]]
"""A sample by its name and its labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsSite:
    """A cluster of masters, an appliance before it, and where its statistics are."""

    cluster: Cluster
    port: int
    socket: Path

    def config(self, *, revision: int = 0, **stats: object) -> Config:
        """Return the operator's file."""
        section = {"bind": f"127.0.0.1:{self.port}", "socket": str(self.socket), **stats}
        return {**self.cluster.config(revision=revision), "stats": section}

    def url(self, path: str) -> str:
        """Return the URL of a page."""
        return f"http://127.0.0.1:{self.port}{path}"

    def page(self, path: str, **how: str) -> str:
        """Return a page."""
        return get(self.url(path), **how)[1]

    def samples(self) -> Mapping[Sample, float]:
        """Return all samples of one scrape."""
        families = text_string_to_metric_families(self.page("/metrics"))
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in families
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float | None:
        """Return one sample, None where there is none."""
        return self.samples().get((name, frozenset(labels.items())))

    def counters(self) -> Mapping[Sample, float]:
        """Return the samples of one scrape that may never become smaller."""
        endings = ("_total", "_bucket", "_count", "_sum")
        return {sample: value for sample, value in self.samples().items() if sample[0].endswith(endings)}

    def wait_for(self, name: str, value: float, **labels: str) -> None:
        """Return once a sample has a value."""
        wait_until(lambda: self.value(name, **labels) == value, what=f"{name} {labels} is {value}")

    def command(self, line: str) -> str:
        """Return the answer of the stats socket."""
        return socket_answer(self.socket, f"{line}\n")


@contextlib.contextmanager
def stats_site(**how: object) -> Iterator[StatsSite]:
    """Run masters, an appliance before them, and its program stats; `how` is for the cluster."""
    with cluster(**how) as made:
        site = StatsSite(
            cluster=made, port=free_port(), socket=made.appliance.paths.runtime.parent / "haproxy.sock"
        )
        answer = made.appliance.reload(site.config())
        assert answer["ok"], answer
        wait_until(lambda: made.appliance.program_pid("stats"), what="stats answers")
        yield site
