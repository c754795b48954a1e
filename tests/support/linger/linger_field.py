"""Nodes that share a virtual IP with `linger`, each with a server of its own name, and clients of it."""

import contextlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

from support.machines.fleet import NamedAppliance
from support.network import greeter, steady_clients
from support.network.namespaces import INTERFACE, Node, Segment
from support.processes.processes import end
from support.processes.waiting import wait_until
from support.supervisor.appliance import Values

VIP: Final = "192.0.2.100"
VIP6: Final = "fd00::100"
PORT: Final = 9445
SERVER_PORT: Final = 7001
KEY: Final = "ab" * 32
COUNT: Final = 1000 if os.environ.get("E2E_FULL") else 50
"""Connections of one group of clients."""

PERIOD: Final = 0.5 if os.environ.get("E2E_FULL") else 0.05
"""Seconds between two questions of one connection."""


def config(
    *, priority: int, vip: str = VIP, router: Values | None = None, **changes: object
) -> dict[str, object]:
    """Return the configuration of a node whose pool is the greeter of its own name.

    `router` has more keys of the virtual IP.
    """
    length = 64 if ":" in vip else 24
    return {
        "api": {"frontends": {"kube-api": {"bind": [f"[::]:{PORT}"], "pool": "masters"}}},
        "pools": {
            "masters": {
                "check": {"type": "tcp", "interval": "1s"},
                "servers": {"own": {"address": f"127.0.0.1:{SERVER_PORT}"}},
            }
        },
        "defaults": {"drain": "2s"},
        "linger": {"key": KEY},
        "virtual_ips": {
            "api": {
                "addresses": [f"{vip}/{length}"],
                "interface": INTERFACE,
                "router_id": 42,
                "version": 3,
                "advert": "200ms",
                "priority": priority,
                **(router or {}),
            }
        },
        **changes,
    }


class LingerNode:
    """One node with a whole appliance, and a server that says `name`. Use it as a context manager."""

    def __init__(
        self, node: Node, name: str, config: dict[str, object], *, server: str = greeter.__file__
    ) -> None:
        self.node, self.name = node, name
        node.start([sys.executable, server, name, str(SERVER_PORT)])
        with node.inside():
            self.appliance = NamedAppliance(name, config)

    def __enter__(self) -> Self:
        with self.node.inside():
            self.appliance.__enter__()
        return self

    def __exit__(self, *given: object) -> None:
        self.appliance.__exit__(*given)

    def status(self) -> Values:
        """Return what `linger` answers, empty while it does not."""
        with contextlib.suppress(OSError, ValueError):
            return self.appliance.ask("linger", "status")
        return {}

    def kept(self, vip: str = VIP) -> Values:
        """Return what this node has of an address, empty for nothing."""
        return next((each for each in listed(self.status(), "addresses") if each["address"] == vip), {})

    def others(self, vip: str = VIP) -> dict[str, Values]:
        """Return what the other nodes say of an address, by their addresses."""
        said = listed(self.status(), "others")
        return {str(each["node"]): each for each in said if each["address"] == vip}

    def state(self) -> str:
        """Return the state of the virtual router, "" while `vrrp` does not answer."""
        with contextlib.suppress(OSError, ValueError):
            routers = listed(self.appliance.ask("vrrp", "status"), "routers")
            return str(routers[0]["state"]) if routers else ""
        return ""

    def move(self, *, forced: bool = False) -> None:
        """Move the virtual IP to another node, and wait until it is there; `forced` is without `linger`."""
        self.appliance.command("vip", "move", "api", *(["--force"] if forced else []))

    def shown(self) -> str:
        """Return what `vip status` shows, without its line breaks."""
        return " ".join(self.appliance.command("vip", "status", check=False).stdout.split())

    def nft(self) -> str:
        """Return the rules of nftables in this node."""
        return self.node.run(["nft", "list", "ruleset"])


def listed(values: Values, key: str) -> list[Values]:
    """Return a list of what a program has answered; none where it has not."""
    found = values.get(key, [])
    assert isinstance(found, list)
    return found


def wait_until_ready(nodes: list[LingerNode], vip: str = VIP) -> None:
    """Wait until one node serves the address, and all others have heard so."""

    def ready() -> bool:
        active = [each for each in nodes if each.kept(vip).get("active")]
        if len(active) != 1:
            return False
        rest = [each for each in nodes if each not in active]
        return all(any(said["active"] for said in each.others(vip).values()) for each in rest)

    wait_until(ready, what="all have heard who serves", timeout=30.0)


def moved(source: LingerNode, target: LingerNode, vip: str = VIP) -> None:
    """Move the virtual IP, and wait until both know."""
    source.move()
    wait_until(lambda: target.kept(vip).get("active"), what=f"{target.name} serves")
    wait_until(lambda: source.kept(vip).get("active") is False, what=f"{source.name} has left")


def established(client: Node) -> int:
    """Return how many connections the client has."""
    return client.run(["ss", "-tnH", "state", "established"]).count("\n")


class SteadyClients:
    """Connections with traffic all the time. Use it as a context manager; `end` tells what they saw."""

    def __init__(self, node: Node, *, count: int, period: float, vip: str = VIP) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="lb-steady-")
        self._file = Path(self._directory.name) / "lines"
        arguments = [vip, str(PORT), str(count), str(period)]
        with self._file.open("wb") as output:
            self._process = node.start(
                [sys.executable, str(Path(steady_clients.__file__)), *arguments], output=output
            )

    def __enter__(self) -> Self:
        wait_until(lambda: "open" in self._file.read_text(), what="all connections are open", timeout=60.0)
        return self

    def __exit__(self, *_: object) -> None:
        end(self._process)
        self._directory.cleanup()

    def ask(self) -> None:
        """Have all ask now, and wait until each is answered or has ended."""
        before = self._file.read_text().count("answered")
        self._process.send_signal(signal.SIGUSR1)
        wait_until(
            lambda: self._file.read_text().count("answered") > before, what="all are answered", timeout=60.0
        )

    def end(self) -> Values:
        """End them and return what they saw."""
        self._process.terminate()
        self._process.wait(30)
        values: Values = json.loads(self._file.read_text().splitlines()[-1])
        return values


def who_answers(client: Node, vip: str = VIP) -> str:
    """Return the name of the server that a new connection reaches, "" for none."""
    code = (
        "import socket,sys;c=socket.create_connection((sys.argv[1],int(sys.argv[2])),timeout=5);"
        "print(c.recv(100).decode().strip())"
    )
    return client.run([sys.executable, "-c", code, vip, str(PORT)], check=False).strip()


@contextlib.contextmanager
def pair(**changes: object) -> Iterator[tuple[Node, LingerNode, LingerNode]]:
    """Run two nodes of priorities 150 and 100, and give a client and both, the first of them active."""
    vip = str(changes.get("vip", VIP))
    with Segment() as segment, contextlib.ExitStack() as stack:
        nodes = [segment.node(name) for name in ("one", "two")]
        client = segment.node("client")
        running = [
            stack.enter_context(LingerNode(node, name, config(priority=priority, **changes)))  # type: ignore[arg-type]  # keys of the configuration
            for node, name, priority in zip(nodes, ("one", "two"), (150, 100), strict=True)
        ]
        wait_until(lambda: running[0].state() == "active", what="one is active", timeout=30.0)
        wait_until_ready(running, vip)
        yield client, running[0], running[1]
