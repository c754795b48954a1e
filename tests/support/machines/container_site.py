"""A segment with servers and a client, and nodes on which containers of the image run as on machines."""

import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yaml
from support.machines.podman import ROOT, Container, quadlet
from support.network.namespaces import Node, Segment
from support.peers.backend import Backend
from support.processes.waiting import wait_until

Config = dict[str, object]

VIP: Final = "192.0.2.100"
API: Final = 9445
_SERVERS: Final = {"master-0": 6443, "master-1": 6444}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """`one` and `two` run containers, `servers` has the servers of `config`."""

    one: Node
    two: Node
    client: Node
    servers: Node
    folder: Path
    started: list[Container] = field(default_factory=list)

    def config(self, *, priority: int = 100, drain: str = "5s", **changes: object) -> Config:
        """Return one with everything: both groups, a low port, an endpoint, a tracked virtual IP."""
        addresses = {name: f"{self.servers.address}:{port}" for name, port in _SERVERS.items()}
        pool: Config = {
            "check": {"type": "tcp", "interval": "500ms", "fall": 2, "rise": 1},
            "servers": {name: {"address": address} for name, address in addresses.items()},
        }
        router: Config = {
            "addresses": [f"{VIP}/24"],
            "interface": "eth0",
            "router_id": 51,
            "priority": priority,
            "advert": "100ms",
            "version": 3,
            "track": {"here": {"script": ["/bin/true"], "interval": "1s", "weight": 10}},
        }
        return {
            "api": {
                "frontends": {
                    "kube-api": {"bind": [f"[::]:{API}"], "pool": "masters"},
                    "ready": {"bind": ["[::]:9444"], "respond": "/haproxy_ready"},
                }
            },
            "ingress": {"frontends": {"http": {"bind": ["[::]:80"], "pool": "masters"}}},
            "pools": {"masters": pool},
            "defaults": {"drain": drain},
            "virtual_ips": {"api": router},
            **changes,
        }

    def write(self, config: Config | str, *, name: str = "one") -> Path:
        """Write a configuration, and return the folder to mount."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
        text = config if isinstance(config, str) else yaml.safe_dump(config, sort_keys=False)
        scratch = folder / "scratch"
        scratch.write_text(text)
        scratch.chmod(0o644)
        scratch.replace(folder / "appliance.yaml")
        return folder

    def container(
        self, node: Node, *arguments: str, config: Path, plain: bool = False, image: str = ""
    ) -> Container:
        """Start a container on a node, with the settings of the unit that we ship or with podman's own."""
        shipped = [] if plain else quadlet(ROOT / "image" / "appliance.container")
        container = Container(
            *("--network", f"ns:/run/netns/{node.name}", *shipped),
            *("--volume", f"{config}:/etc/appliance:ro", *arguments),
            image=image,
        )
        self.started.append(container)
        return container

    def connect(self, address: str, port: int = API) -> socket.socket:
        """Return the client's connection."""
        with self.client.inside():
            return socket.create_connection((address, port), timeout=10)

    def who(self, address: str, port: int = API) -> str:
        """Return the name of the server that the client gets, "" for none."""
        with contextlib.suppress(OSError), self.connect(address, port) as connection:
            connection.settimeout(5)
            connection.sendall(b"who\n")
            return connection.recv(100).decode().strip()
        return ""

    def serves(self, address: str, port: int = API) -> None:
        """Wait until the client gets an answer, as long as the container that was started last runs."""
        wait_until(
            lambda: self.who(address, port) or not self.started[-1].is_running(),
            what=f"{address}:{port} answers",
            timeout=60,
        )
        assert self.started[-1].is_running(), "the container has ended"


@contextlib.contextmanager
def site(folder: Path) -> Iterator[Site]:
    """Make a site, with its servers up."""
    folder.chmod(0o755)
    with Segment() as segment, contextlib.ExitStack() as stack:
        one, two, client, servers = (segment.node(name) for name in ("one", "two", "client", "servers"))
        with servers.inside():
            for name, port in _SERVERS.items():
                stack.enter_context(Backend(name, port=port))
        yield Site(one=one, two=two, client=client, servers=servers, folder=folder)


def say(connection: socket.socket, text: str) -> str:
    """Send a line and return the line that comes back, "" for the end."""
    connection.settimeout(10)
    connection.sendall(f"line {text}\n".encode())
    received = b""
    while not received.endswith(b"\n") and (chunk := connection.recv(4096)):
        received += chunk
    return received.decode().strip()
