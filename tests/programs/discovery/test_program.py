"""Servers that are found in a cluster's API: the whole appliance beside API servers of all tempers."""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import trustme
from support.discovery.kube_api import (
    API_SLICES,
    CONFIGMAPS,
    CONTROLLERS,
    NODES,
    SLICES,
    Credentials,
    KubeApi,
    KubeCluster,
    Trouble,
    api_slice,
    credentials,
    node,
    router_slice,
)
from support.load.load import Load
from support.network.ports import accepts, free_port
from support.peers.backend import Backend
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance

pytestmark = pytest.mark.programs

_PATIENCE = 30.0
_FULL = os.environ.get("E2E_FULL") == "1"
_SESSIONS = 200 if _FULL else 30
_RATE = 300.0 if _FULL else 100.0
_WITHOUT_THE_API = 30_000 if _FULL else 100  # connections at 50/s: ten minutes


@dataclass(slots=True, kw_only=True)
class Site:
    """A cluster with its API servers, the masters that are there, and the appliance in front of them."""

    cluster: KubeCluster
    authority: trustme.CA
    apis: list[KubeApi]
    files: Credentials
    stack: contextlib.ExitStack
    port: int = field(default_factory=free_port)
    masters_port: int = field(default_factory=free_port)
    masters: dict[str, Backend] = field(default_factory=dict)
    appliance: Appliance = field(init=False)

    def config(self, **servers: object) -> dict[str, Any]:
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
        pool = next(each for each in self.appliance.status()["pools"] if each["name"] == "masters")
        return {each["name"]: each["state"] for each in pool["servers"]}

    def discovered(self) -> dict[str, Any]:
        """Return what `appliance discover --json` prints."""
        found: dict[str, Any] = json.loads(self.appliance.command("discover", "--json", check=False).stdout)
        return found

    def routers(self) -> list[tuple[str, int, str]]:
        """Return name, port and header of the servers of the pool `routers`."""
        pools = json.loads(self.appliance.paths.accepted.read_text())["pools"]
        (pool,) = (each for each in pools if each["name"] == "routers")
        return [(each["name"], each["port"], pool["send_proxy"]) for each in pool["servers"]]

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
        made = Site(cluster=cluster, authority=authority, apis=servers, files=files, stack=stack)
        for number in range(masters):
            made.start_master(f"master-{number}", f"127.0.0.{11 + number}")
        cluster.put(API_SLICES, api_slice(*(f"127.0.0.{11 + number}" for number in range(masters))))
        made.appliance = Appliance(made.config())
        if running:
            stack.enter_context(made.appliance)
            made.wait_for(*made.masters)
        yield made


@pytest.mark.promise("docs/discovery.md", "masters are replaced, and no connection fails")
@pytest.mark.promise("program", "discover")
def test_masters_are_replaced_one_after_another_under_load(tmp_path: Path):
    """No new connection fails, sessions of a removed master go on, and no generation is made."""
    with site(tmp_path) as made, Load(port=made.port, sessions=_SESSIONS, rate=_RATE) as load:
        load.wait_for_sessions()
        for number in range(3):
            old, new = f"master-{number}", f"master-{number + 3}"
            made.start_master(new, f"127.0.0.{14 + number}")
            made.wait_for(*made.masters)
            made.cluster.remove(NODES, old)
            made.wait_for(*(name for name in made.masters if name != old))
            _wait_for_no_new(load, old)
            assert load.report().ended == [] if not number else True
            made.stop_master(old)
        made.cluster.put(API_SLICES, api_slice("127.0.0.14", "127.0.0.15", "127.0.0.16"))
        before = load.report().servers
        wait_until(
            lambda: all(load.report().servers.get(name, 0) > before.get(name, 0) for name in made.masters),
            what="all new masters serve",
        )
        report = load.report()
        assert report.failures == {}
        assert made.appliance.generation() == 1
        # Only sessions of masters that were ended have ended.
        assert {each.server for each in report.ended} <= {"master-0", "master-1", "master-2"}
        assert len(made.appliance.events("servers-found")) == 7


@pytest.mark.slow("a whole appliance beside API servers")
def test_without_the_api_nothing_changes_and_a_relist_replaces(tmp_path: Path):
    """Every API server is gone, while checks and traffic go on; what comes back has another history."""
    with site(tmp_path) as made, Load(port=made.port, sessions=10, rate=50) as load:
        load.wait_for_sessions()
        configuration = made.appliance.accepted()
        for each in made.apis:
            each.stop()
        made.appliance.wait_for_event("api-failed", lambda event: event["reason"] == "unreachable")
        done = load.report().completed
        wait_until(
            lambda: load.report().completed > done + _WITHOUT_THE_API,
            what=f"{_WITHOUT_THE_API} connections more",
            timeout=_WITHOUT_THE_API,
        )
        assert made.appliance.accepted() == configuration
        assert sorted(made.servers().items()) == [(f"master-{number}", "up") for number in range(3)]
        shown = made.discovered()["sources"][0]["resources"][0]
        assert shown["error"].startswith("unreachable")
        assert shown["failed_at"] >= shown["seen_at"]

        made.cluster.restart_history()
        made.cluster.remove(NODES, "master-2")
        made.start_master("master-3", "127.0.0.14")
        with KubeApi(made.cluster, made.authority, port=made.apis[0].port):
            made.wait_for("master-0", "master-1", "master-3")
            assert load.report().failures == {}
            assert load.report().ended == []


@pytest.mark.slow("a whole appliance beside API servers")
@pytest.mark.promise("docs/discovery.md", "without the API the last list serves")
def test_a_start_without_the_api_uses_the_last_list(tmp_path: Path):
    """Also where the runtime directory is new, as after a boot; then the API is found again."""
    with site(tmp_path) as made:
        made.appliance.stop(patience=30.0)
        for each in made.apis:
            each.stop()
        shutil.rmtree(made.appliance.paths.runtime)
        made.appliance.start()
        made.wait_for("master-0", "master-1", "master-2")
        assert accepts(made.port)
        made.start_master("master-3", "127.0.0.14")
        with KubeApi(made.cluster, made.authority, port=made.apis[1].port):
            made.wait_for(*made.masters)


@pytest.mark.slow("a whole appliance beside API servers")
def test_the_first_start_ever_waits_for_nothing(tmp_path: Path):
    """Without the API and without a list it starts with an empty pool, which is a named problem."""
    with site(tmp_path, running=False) as made:
        troubles = contextlib.ExitStack()
        for each in made.apis:
            troubles.enter_context(each.in_trouble(Trouble(status=503)))
        with made.appliance:
            made.appliance.wait_for_event("api-failed")
            status = made.appliance.command("status", check=False)
            assert status.returncode == 1
            assert "discover masters: no server has been found yet" in status.stdout
            assert made.servers() == {}
            troubles.close()
            made.wait_for(*made.masters)
            assert made.appliance.command("status").returncode == 0


@pytest.mark.promise("docs/discovery.md", "an empty list changes nothing")
def test_an_empty_list_changes_nothing(tmp_path: Path):
    """It is a named problem until Nodes are there again; one that comes is used meanwhile."""
    with site(tmp_path) as made:
        configuration = made.appliance.accepted()
        made.cluster.clear(NODES)
        made.appliance.wait_for_event("servers-held")
        assert made.servers() == {"master-0": "up", "master-1": "up", "master-2": "up"}
        assert made.appliance.accepted() == configuration
        shown = made.appliance.command("discover", check=False)
        assert shown.returncode == 1
        assert "the list is empty" in shown.stdout
        assert "master-1" in shown.stdout
        assert "the list is empty" in made.appliance.command("status", check=False).stdout
        for number in range(3):
            made.cluster.put(NODES, node(f"master-{number}", f"127.0.0.{11 + number}"))
        made.appliance.wait_for_event("servers-not-held")
        assert made.appliance.command("discover").returncode == 0


@pytest.mark.promise("docs/discovery.md", "more than half go only when others agree")
def test_more_than_half_go_only_when_others_agree(tmp_path: Path):
    """The API server's own list of those that serve is enough; until it agrees all stay."""
    with site(tmp_path) as made:
        made.cluster.remove(NODES, "master-0")
        made.cluster.remove(NODES, "master-1")
        made.appliance.wait_for_event("servers-held")
        assert len(made.servers()) == 3
        made.cluster.put(API_SLICES, api_slice("127.0.0.13"))
        made.wait_for("master-2")


@pytest.mark.slow("a whole appliance beside API servers")
def test_a_broken_file_does_not_stop_what_is_found(tmp_path: Path):
    """Servers follow the cluster by the configuration that is obeyed; the refusal stays a problem."""
    with site(tmp_path) as made:
        assert made.appliance.reload({**made.config(), "pools": "oops"})["ok"] is False
        made.start_master("master-3", "127.0.0.14")
        made.wait_for(*made.masters)
        assert "last reload was refused" in made.appliance.command("status", check=False).stdout
        assert made.appliance.reload(made.config())["ok"] is True
        assert len(made.servers()) == 4


@pytest.mark.promise("survives", "discover")
def test_the_loss_of_discover_costs_freshness_only(tmp_path: Path):
    """Killed under load, it is started again and goes on; the state that it left may be damaged."""
    with site(tmp_path) as made, Load(port=made.port, sessions=10, rate=50) as load:
        load.wait_for_sessions()
        old = made.appliance.kill("discover")
        for path in (made.appliance.paths.found_servers, made.appliance.paths.kept_found_servers):
            path.write_bytes(b"{damaged")
        made.appliance.wait_for_restart("discover", old)
        made.start_master("master-3", "127.0.0.14")
        made.wait_for(*made.masters)
        assert load.report().failures == {}
        assert load.report().ended == []


@pytest.mark.slow("a whole appliance beside API servers")
def test_routers_are_found_with_ports_and_header(tmp_path: Path):
    """Ready ones, at the ports and with the header of the IngressController; a missing right is named."""
    with site(tmp_path, masters=1) as made:
        places = {"infra-0": "127.0.0.21", "!infra-1": "127.0.0.22"}
        made.cluster.put(SLICES, router_slice("default-x", places, https=made.masters_port))
        config = made.config()
        config["pools"]["routers"] = {"check": False, "servers": {"discover": {"routers": "default"}}}
        config["api"]["frontends"]["https"] = {"bind": [f"[::]:{free_port()}"], "pool": "routers"}
        forbidden = Trouble(status=403)
        with (
            made.apis[0].in_trouble(forbidden, path=CONTROLLERS),
            made.apis[1].in_trouble(forbidden, path=CONTROLLERS),
        ):
            assert made.appliance.reload(config)["ok"] is True
            wait_until(lambda: made.routers() == [("infra-0", made.masters_port, "none")], what="a router")
            problems = made.discovered()["problems"]
            assert [each for each in problems if "ingresscontroller default" in each and "forbidden" in each]
        made.appliance.kill("discover")  # which asks again at once
        network = {"httpPort": 81, "httpsPort": 8443, "protocol": "PROXY"}
        strategy = {"type": "HostNetwork", "hostNetwork": network}
        status = {"endpointPublishingStrategy": strategy}
        made.cluster.put(CONTROLLERS, {"metadata": {"name": "default"}, "status": status})
        wait_until(lambda: made.routers() == [("infra-0", 8443, "v2")], what="ports and header", timeout=60.0)
        assert made.appliance.generation() == made.appliance.generation("proxy-api")


@pytest.mark.slow("a whole appliance beside API servers")
def test_the_bootstrap_server_leaves_when_the_cluster_is_installed(tmp_path: Path):
    """It is written by hand beside the masters that are found."""
    with site(tmp_path) as made:
        bootstrap = {"address": f"127.0.0.11:{made.masters_port + 1}", "backup": True, "check": False}
        assert made.appliance.reload(made.config(bootstrap=bootstrap))["ok"] is True
        assert "bootstrap" in made.servers()
        made.cluster.put(CONFIGMAPS, {"metadata": {"name": "bootstrap"}, "data": {"status": "complete"}})
        made.wait_for("master-0", "master-1", "master-2")
        assert made.appliance.reload()["changed"] == []


def _wait_for_no_new(load: Load, name: str) -> None:
    """Wait until a hundred connections in a row have not come to a server."""

    def unused() -> bool:
        before = load.report()
        wait_until(lambda: load.report().completed > before.completed + 100, what="a hundred connections")
        return load.report().servers.get(name, 0) == before.servers.get(name, 0)

    wait_until(unused, what=f"{name} gets no new connection", timeout=_PATIENCE)
