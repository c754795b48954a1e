"""A cluster of scripted masters, and the appliance's configuration in front of them."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from support.network.ports import free_port
from support.peers.backend import Backend
from support.supervisor.appliance import Appliance

Config = dict[str, object]


@dataclass(slots=True)
class Cluster:
    """Masters behind one frontend `kube-api` on both families; `port` is where clients connect."""

    masters: Sequence[Backend]
    workers: int
    pool: Mapping[str, object]
    drain: float
    watchdog: str = "10s"
    sessions: str = "drain"
    port: int = field(default_factory=free_port)
    appliance: Appliance = field(init=False)

    def config(self, *, revision: int = 0, **pool: object) -> Config:
        """Return the operator's file; each `revision` is one that needs a new generation."""
        frontend: Config = {"bind": [f"[::]:{self.port}"], "pool": "masters"}
        name = f"kube-api-{revision}" if revision else "kube-api"  # who serves what is part of a generation
        return {
            "api": {"workers": self.workers, "frontends": {name: frontend}},
            "pools": {"masters": {**_POOL, "servers": self._servers(), **self.pool, **pool}},
            "defaults": {"drain": f"{self.drain:g}s"},
            "reload": {"max_draining": 200, "sessions": self.sessions},
            "watchdog": self.watchdog,
        }

    def master(self, name: str) -> Backend:
        """Return the master of that name."""
        return next(master for master in self.masters if master.name == name)

    def _servers(self) -> Config:
        return {each.name: {"address": f"127.0.0.1:{each.port}"} for each in self.masters}


_POOL: Config = {
    "balance": "roundrobin",
    "check": {
        "type": "http",
        "path": "/readyz",
        "interval": "500ms",
        "fast_interval": "250ms",
        "down_interval": "500ms",
        "timeout": "5s",
        "fall": 2,
        "rise": 2,
    },
}


@contextlib.contextmanager
def cluster(
    *,
    masters: int = 3,
    workers: int = 2,
    drain: float = 5.0,
    pool: Mapping[str, object] | None = None,
    watchdog: str = "10s",
    sessions: str = "drain",
) -> Iterator[Cluster]:
    """Run masters `master-0` and so on, and the appliance in front of them, all up.

    `sessions` is what becomes of them with a new generation.
    """
    with contextlib.ExitStack() as stack:
        backends = [stack.enter_context(Backend(f"master-{number}")) for number in range(masters)]
        made = Cluster(backends, workers, pool or {}, drain, watchdog, sessions)
        made.appliance = Appliance(made.config())
        stack.enter_context(made.appliance)
        yield made
