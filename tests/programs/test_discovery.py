"""Servers that are found in a cluster's API: the whole appliance beside API servers of all tempers."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trustme
from support.load.load import Load
from support.network.ports import free_port
from support.peers.backend import Backend
from support.peers.kube_api import (
    API_SLICES,
    NODES,
    Credentials,
    KubeApi,
    KubeCluster,
    api_slice,
    credentials,
    node,
)
from support.processes.waiting import wait_until
from support.programs.appliance import Appliance

pytestmark = pytest.mark.programs

_PATIENCE = 30.0


@dataclass(slots=True, kw_only=True)
class Site:
    """A cluster with its API servers, the masters that are there, and the appliance in front of them."""

    cluster: KubeCluster
    apis: list[KubeApi]
    files: Credentials
    stack: contextlib.ExitStack
    port: int = field(default_factory=free_port)
    masters_port: int = field(default_factory=free_port)
    masters: dict[str, Backend] = field(default_factory=dict)
    appliance: Appliance = field(init=False)

    def config(self, **servers: object) -> dict[str, object]:
        """Return the operator's file: masters by label, at the port of this test."""
        check = {"type": "http", "path": "/readyz", "interval": "500ms", "fast_interval": "250ms"}
        discover = {"nodes": "masters", "port": self.masters_port}
        return {
            "api": {
                "workers": 1,
                "frontends": {"kube-api": {"bind": [f"[::]:{self.port}"], "pool": "masters"}},
            },
            "pools": {
                "masters": {
                    "check": {**check, "rise": 1, "fall": 2},
                    "servers": {"discover": discover, **servers},
                }
            },
            "kubernetes": self.files.section(*self.apis),
            "defaults": {"drain": "5s"},
        }

    def start_master(self, name: str, address: str) -> None:
        """Start a master, and show it in the API."""
        backend = Backend(name, port=self.masters_port, host=address)
        self.masters[name] = self.stack.enter_context(backend)
        self.cluster.put(NODES, node(name, address))

    def stop_master(self, name: str) -> None:
        """End a master, with its connections."""
        self.masters.pop(name).stop()

    def servers(self) -> dict[str, str]:
        """Return the state of each server of the pool by name."""
        (pool,) = self.appliance.status()["pools"]
        return {each["name"]: each["state"] for each in pool["servers"]}

    def wait_for(self, *names: str) -> None:
        """Wait until these servers are up, and no other is in the pool."""
        wanted = dict.fromkeys(names, "up")
        wait_until(lambda: self.servers() == wanted, what=f"{names} are up", timeout=_PATIENCE)


@contextlib.contextmanager
def site(directory: Path, *, masters: int = 3, apis: int = 2, running: bool = True) -> Iterator[Site]:
    """Run API servers and masters `master-0` and so on at 127.0.0.11 and so on, and the appliance."""
    authority, cluster = trustme.CA(), KubeCluster()
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(KubeApi(cluster, authority)) for _ in range(apis)]
        files = credentials(directory, authority)
        made = Site(cluster=cluster, apis=servers, files=files, stack=stack)
        for number in range(masters):
            made.start_master(f"master-{number}", f"127.0.0.{11 + number}")
        cluster.put(API_SLICES, api_slice(*(f"127.0.0.{11 + number}" for number in range(masters))))
        made.appliance = Appliance(made.config())
        if running:
            stack.enter_context(made.appliance)
            made.wait_for(*made.masters)
        yield made


def test_masters_are_found_and_followed(tmp_path: Path):
    """Masters serve that only the API names; one that comes and one that goes is a live change."""
    with site(tmp_path) as made, Load(port=made.port, sessions=30, rate=50) as load:
        load.wait_for_sessions()
        wait_until(lambda: len(load.report().servers) == 3, what="all masters serve")

        made.start_master("master-3", "127.0.0.14")
        made.wait_for("master-0", "master-1", "master-2", "master-3")
        made.cluster.remove(NODES, "master-0")
        made.wait_for("master-1", "master-2", "master-3")

        assert made.appliance.generation() == 1
        assert load.report().failures == {}
        assert load.report().ended == []
