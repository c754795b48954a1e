"""A load balancer that has the kernel forward, servers that say their names, and clients: by namespaces."""

import contextlib
import re
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from support.network import greeter
from support.network.greeted_clients import GreetedClients
from support.network.namespaces import INTERFACE, Node, Segment
from support.processes.processes import end
from support.processes.waiting import patient, wait_until
from support.supervisor.appliance import Appliance, Values

from appliance.core.forwarding.mark_numbers import MARK, MARK_MASK
from appliance.net.netlink.conntrack import Conntrack, TrackedConnection

VIPS: Final = ("192.0.2.200", "fd00::200")
PORT: Final = 9445
SERVER_PORT: Final = 7001
_GREETER: Final = (greeter.__file__,)
_FORWARDING: Final = ("net/ipv4/conf/all/forwarding", "net/ipv6/conf/all/forwarding")


@dataclass
class ForwardField:
    """The nodes: `balancer` with two virtual IPs, `client`, and servers `s1`, `s2`, `s3` of both families.

    `version` is the version of IP of servers and clients where nothing else is said.
    """

    balancer: Node
    client: Node
    servers: dict[str, Node]
    version: int = 4

    def __post_init__(self) -> None:
        self._processes = {name: self._serve(name) for name in self.servers}

    def config(
        self, *, forward: str = "kernel", pool: dict[str, object] | None = None, **frontend: object
    ) -> dict[str, object]:
        """Return a configuration with one frontend for all addresses, with quick checks."""
        check = {"type": "tcp", "interval": "200ms", "fall": 2, "rise": 2}
        mine = {"bind": [f"[::]:{PORT}"], "pool": "servers", "forward": forward, **frontend}
        return {
            "api": {"workers": 2, "frontends": {"main": mine}},
            "pools": {"servers": {"check": check, "servers": self.members(), **(pool or {})}},
            "defaults": {"drain": "2s"},
        }

    @property
    def address(self) -> str:
        """The virtual IP that clients connect to."""
        return VIPS[0] if self.version == 4 else VIPS[1]

    def members(self, version: int | None = None, **changes: dict[str, object]) -> dict[str, object]:
        """Return the servers as a pool has them, in one version of IP."""
        version = version or self.version
        hosts = {
            name: f"[{node.address6}]" if version == 6 else node.address
            for name, node in self.servers.items()
        }
        return {
            name: {"address": f"{host}:{SERVER_PORT}", **changes.get(name, {})}
            for name, host in hosts.items()
        }

    @contextmanager
    def appliance(self, config: dict[str, object] | None = None) -> Iterator[Appliance]:
        """Run an appliance on the balancer."""
        with contextlib.ExitStack() as stack:
            with self.balancer.inside():
                running = Appliance(config or self.config())
                running.start()
            stack.push(running)
            yield running

    def session(self, address: str = "", *, node: Node | None = None, timeout: float = 10.0) -> "Session":
        """Return an open connection; the server's greeting has been read."""
        with (node or self.client).inside():
            connection = socket.create_connection((address or self.address, PORT), timeout=patient(timeout))
        try:
            return Session(connection)
        except OSError:
            connection.close()
            raise

    def connect_from(self, source: str, to: tuple[str, int]) -> socket.socket:
        """Return a connection from the client, "" for any of its addresses; the server has greeted on it."""
        with self.client.inside():
            connection = socket.create_connection(to, timeout=10, source_address=(source, 0))
        assert connection.recv(1)
        return connection

    def ask(self, address: str = "", *, node: Node | None = None, timeout: float = 10.0) -> str:
        """Return who answers a new connection, or the error as `!NAME`."""
        try:
            with contextlib.closing(self.session(address, node=node, timeout=timeout)) as session:
                return session.server or "!lost"
        except OSError as error:
            return f"!{type(error).__name__}"

    def wait_for(self, *names: str, address: str = "") -> None:
        """Wait until connections are answered by exactly these servers."""
        wait_until(
            lambda: set(self.shares(4 * len(names), address)) == set(names),
            what=f"answers of {names}",
            timeout=60.0,
        )

    @contextmanager
    def clients(self, address: str = VIPS[0]) -> Iterator["GreetedClients"]:
        """Have clients connect at a steady rate."""
        with GreetedClients(self.client, address, PORT, rate=100) as made:
            yield made

    def shares(self, count: int, address: str = "") -> Counter[str]:
        """Return by whom so many connections were answered."""
        return Counter(self.ask(address) for _ in range(count))

    def stop_server(self, name: str) -> None:
        """Kill a server: its port refuses."""
        end(self._processes.pop(name))

    def start_server(self, name: str, program: Sequence[str] = _GREETER) -> None:
        """Start a server that was stopped; `program` is given its name and port."""
        self._processes[name] = self._serve(name, program)

    def nft(self) -> str:
        """Return the balancer's whole ruleset."""
        return self.balancer.run(["nft", "list", "ruleset"])

    def rules(self, family: str) -> list[str]:
        """Return what the balancer's table of a family holds, but what was counted, in a fixed order."""
        shown = self.balancer.run(["nft", "-s", "list", "table", family, "lb_forward"], check=False)
        return sorted(each.strip() for each in re.split(r"[,\n{}]", shown))

    def forget_connections(self) -> None:
        """Have the balancer's kernel forget the connections that it tracks for us."""
        with self.balancer.inside(), contextlib.closing(Conntrack()) as conntrack:
            conntrack.delete(MARK, MARK_MASK)

    def tracked(self) -> tuple[TrackedConnection, ...]:
        """Return the connections that the balancer's kernel tracks with our marks."""
        with self.balancer.inside(), contextlib.closing(Conntrack()) as conntrack:
            return conntrack.connections(MARK, MARK_MASK)

    def conntrack(self) -> list[str]:
        """Return the same ones as text."""
        return [str(each) for each in self.tracked()]

    def _serve(self, name: str, program: Sequence[str] = _GREETER) -> "subprocess.Popen[bytes]":
        node = self.servers[name]
        started = node.start([sys.executable, *program, name, str(SERVER_PORT)])
        wait_until(lambda: f":{SERVER_PORT} " in node.run(["ss", "-Hntl"]), what=f"{name} listens")
        return started


class Session:
    """A connection whose server is asked again and again who it is."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self._stream = connection.makefile("rb")
        self.server = self._stream.readline().decode().strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def asks(self) -> str:
        """Return who answers on it now."""
        self.socket.sendall(b"?")
        return self._stream.readline().decode().strip()

    def ends(self) -> str:
        """Wait until the other side ends it; return how: `reset`, or `closed`."""
        try:
            return "closed" if not self.socket.recv(1) else "data"
        except ConnectionResetError:
            return "reset"

    def close(self) -> None:
        """Close it."""
        self._stream.close()
        self.socket.close()


@contextmanager
def forward_field() -> Iterator[ForwardField]:
    """Make one, whose balancer forwards packets."""
    with Segment() as segment:
        balancer, client = segment.node("balancer"), segment.node("client")
        servers = {name: segment.node(name) for name in ("s1", "s2", "s3")}
        balancer.batch(
            f"address add {VIPS[0]}/32 dev {INTERFACE}",
            f"address add {VIPS[1]}/128 dev {INTERFACE} nodad preferred_lft 0",  # as vrrp adds it
        )
        let_forward(balancer)
        yield ForwardField(balancer=balancer, client=client, servers=servers)


def let_forward(node: Node, word: str = "1") -> None:
    """Have a node forward packets between its interfaces, as a router does; `0` ends it."""
    with node.inside():
        for each in _FORWARDING:
            (Path("/proc/sys") / each).write_text(word)


def forwards_to(appliance: Appliance, *names: str) -> bool:
    """Say whether the pool's servers that take connections by the last rules are these."""
    found = appliance.events("forward-rules")
    return bool(found) and sorted(found[-1]["servers"]["servers"]) == sorted(names)  # type: ignore[index]  # JSON


def wait_for_servers(appliance: Appliance, *names: str) -> None:
    """Wait until the rules lead to these servers."""
    wait_until(lambda: forwards_to(appliance, *names), what=f"forwards to {names}", timeout=30.0)


def counts(appliance: Appliance, server: str) -> Values:
    """Return what `status` shows of a server."""
    pool = appliance.status()["pools"][0]  # type: ignore[index]  # JSON
    return next(each for each in pool["servers"] if each["name"] == server)


def state(appliance: Appliance, server: str) -> object:
    """Return the state of a server in `status`."""
    return counts(appliance, server)["state"]


def total(appliance: Appliance) -> object:
    """Return how many connections the first frontend has had in `status`."""
    return appliance.status()["frontends"][0]["total"]  # type: ignore[index]  # JSON
