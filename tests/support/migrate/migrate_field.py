"""Nodes whose sessions follow their virtual IPs, a server beside them, and a client."""

import contextlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import Final

from support.linger.linger_field import KEY, PORT, SERVER_PORT, VIP, VIP6, LingerNode, config
from support.network import echoer
from support.network.checked_streams import CheckedStreams
from support.network.namespaces import Node, Segment
from support.processes.processes import end
from support.processes.waiting import wait_until
from support.supervisor.appliance import Values

from appliance.migrate.held_packets import AFTERWARDS

NAMES: Final = ("one", "two", "three")
VIPS: Final = (VIP, VIP6)
FRONTEND: Final = "kube-api"
MIGRATE_PORT: Final = 29447
_PORTS: Final = {"one": "16384-31999", "two": "32000-46999", "three": "47000-60999"}


def certificate(directory: Path, name: str = "nodes") -> Path:
    """Return the file of a certificate and its key, made as docs/taking-a-node-away.md has it."""
    path = directory / f"{name}.pem"
    subprocess.run(  # the command of the page
        [  # as above
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-days", "3650", "-subj", "/CN=lb", "-keyout", str(path), "-out", str(path)),
        ],
        check=True,
        capture_output=True,
    )
    path.chmod(0o644)
    return path


def node_config(
    name: str,
    server: Node,
    pem: Path,
    more: Mapping[int, Values] = MappingProxyType({}),
    *,
    workers: int = 1,
    sessions: Values | None = None,
    **changes: object,
) -> dict[str, object]:
    """Return the configuration of a node; the servers are on another machine.

    `more` are further ports of the virtual IP that lead to the same port there, with keys of their pools,
    None for none, and of their `server`. `sessions` has keys of the section `linger.sessions`.
    """
    made = config(priority=150 - 10 * NAMES.index(name), defaults={"drain": "30s"})
    router = made["virtual_ips"]["api"]  # type: ignore[index]  # a section is a mapping
    servers = {
        family: {"address": f"{host}:{SERVER_PORT}"}
        for family, host in (("four", server.address), ("six", f"[{server.address6}]"))
    }
    pool = {
        "check": {"type": "tcp", "interval": "1s"},
        "source": "virtual-ip",
        "source_ports": _PORTS[name],
    }
    return {
        **made,
        "api": {
            "workers": workers,
            "frontends": {
                FRONTEND: {"bind": [f"{VIP}:{PORT}"], "pool": "four"},
                "kube-api6": {"bind": [f"[{VIP6}]:{PORT}"], "pool": "six"},
                **{f"at{port}": {"bind": [f"{VIP}:{port}"], "pool": f"at{port}"} for port in more},
            },
        },
        "pools": {
            **{family: {**pool, "servers": {family: at}} for family, at in servers.items()},
            **{
                f"at{port}": _pool(f"{server.address}:{port}", {**pool, **keys})
                for port, keys in more.items()
            },
        },
        "linger": {"key": KEY, "sessions": {"certificate": str(pem), **(sessions or {})}},
        "virtual_ips": {
            "api": {**router, "addresses": [f"{VIP}/24"], "sync_group": "api"},
            "api6": {**router, "addresses": [f"{VIP6}/64"], "sync_group": "api"},
        },
        **changes,
    }


def _pool(address: str, keys: Values) -> Values:
    """Return a pool of one server; `server` in its keys has keys of that one."""
    server = keys.get("server", {})
    assert isinstance(server, dict)
    given = {name: value for name, value in keys.items() if name != "server" and value is not None}
    return {**given, "servers": {"it": {"address": address, **server}}}


class MigratingNode(LingerNode):
    """One node."""

    def migrated(self) -> Values:
        """Return the status of `migrate`, empty while it does not answer."""
        with contextlib.suppress(OSError, ValueError):
            return self.appliance.ask("migrate", "status")
        return {}


@contextlib.contextmanager
def migrating_nodes(
    count: int,
    directory: Path,
    *,
    more: Mapping[int, Values] = MappingProxyType({}),
    serve: Callable[[Node], AbstractContextManager[object]] | None = None,
    sessions: Mapping[str, Values] = MappingProxyType({}),
    **changes: object,
) -> Iterator[tuple[Node, list[MigratingNode]]]:
    """Run so many nodes, the first of them active, and give a client and them.

    `serve` starts the servers of the ports `more` on the servers' machine. `sessions` has keys of the section
    `linger.sessions` by node.
    """
    pem = certificate(directory)
    with Segment() as segment, contextlib.ExitStack() as stack:
        client, server = segment.node("client"), segment.node("server")
        server.start([sys.executable, echoer.__file__, "server", str(SERVER_PORT)])
        if serve is not None:
            stack.enter_context(serve(server))
        nodes = [
            stack.enter_context(
                MigratingNode(
                    segment.node(name),
                    name,
                    node_config(name, server, pem, more, sessions=sessions.get(name), **changes),
                )
            )
            for name in NAMES[:count]
        ]
        settle(nodes[0], nodes)
        yield client, nodes


def settle(active: MigratingNode, nodes: list[MigratingNode]) -> None:
    """Wait until this node serves both addresses and all others know."""

    def known() -> bool:
        if not all(active.kept(vip).get("active") for vip in VIPS):
            return False
        rest = [each for each in nodes if each is not active]
        return all(any(said["active"] for said in each.others(vip).values()) for each in rest for vip in VIPS)

    wait_until(known, what=f"{active.name} serves", timeout=60.0)


def is_empty(node: MigratingNode) -> bool:
    """Return whether a node has no connection of an address that has left it."""
    return not any(node.kept(vip) for vip in VIPS)


def wait_until_empty(node: MigratingNode) -> None:
    """Wait for that."""
    wait_until(lambda: is_empty(node), what=f"nothing is left on {node.name}", timeout=60.0)


def fill(streams: CheckedStreams, count: int) -> None:
    """Have that many streams of each family."""
    for vip in VIPS:
        streams.connect(vip, count - streams.report().to.get(vip, 0))


def leave(source: MigratingNode, target: MigratingNode) -> None:
    """Leave the node, and wait until it has nothing more."""
    before = len(source.appliance.events("sessions-moved-to-node"))
    sys.stderr.write(source.appliance.command("leave", "--wait").stderr)
    settle(target, [target])
    wait_until_empty(source)
    _show_moves(source, before)


def _show_moves(source: MigratingNode, before: int) -> None:
    """Show how long the moves took, and the longest pause of a batch."""
    for each in source.appliance.events("sessions-moved-to-node")[before:]:
        shown = {name: each[name] for name in ("address", "sessions", "seconds", "longest_pause")}
        sys.stderr.write(f"{source.name}: {shown}\n")


@contextlib.contextmanager
def late_packets_held(node: Node, directory: Path) -> Iterator[Callable[[], int]]:
    """Watch the kernel of a node: give a function that counts the connections whose late packets it holds.

    Without that hold a packet of a connection that another node has by now finds no socket, and its answer,
    a reset, ends the connection.
    """
    shown = directory / "nft"
    ends = re.compile(rf"\S+ \. \d+ \. \S+ \. {PORT} timeout {AFTERWARDS}s")

    def watches() -> bool:
        node.run(["nft", "add table inet watched; delete table inet watched"])
        return "watched" in shown.read_text()

    with shown.open("wb") as output:
        watch = node.start(["nft", "monitor", "new"], output=output)
        wait_until(watches, what="nft shows what is new")
        yield lambda: len(set(ends.findall(shown.read_text())))
        end(watch)


def take_back(source: MigratingNode, target: MigratingNode) -> None:
    """Let the node of the higher priority take its addresses back, and wait until the other has nothing."""
    before = len(source.appliance.events("sessions-moved-to-node"))
    target.appliance.command("reload")
    settle(target, [source, target])
    wait_until_empty(source)
    _show_moves(source, before)
