"""Nodes whose sessions follow their virtual IPs, a server beside them, and a client."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from support.linger.linger_field import KEY, PORT, SERVER_PORT, VIP, VIP6, LingerNode, config
from support.network import echoer
from support.network.namespaces import Node, Segment
from support.processes.waiting import wait_until
from support.supervisor.appliance import Values

NAMES: Final = ("one", "two", "three")
VIPS: Final = (VIP, VIP6)
FRONTEND: Final = "kube-api"
_PORTS: Final = {"one": "16384-31999", "two": "32000-46999", "three": "47000-60999"}


def certificate(directory: Path) -> Path:
    """Return the file of a certificate and its key, made as docs/virtual-ips.md has it."""
    path = directory / "nodes.pem"
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


def node_config(name: str, server: Node, pem: Path, **changes: object) -> dict[str, object]:
    """Return the configuration of a node; the server is on another machine."""
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
            "workers": 1,
            "frontends": {
                FRONTEND: {"bind": [f"{VIP}:{PORT}"], "pool": "four"},
                "kube-api6": {"bind": [f"[{VIP6}]:{PORT}"], "pool": "six"},
            },
        },
        "pools": {family: {**pool, "servers": {family: at}} for family, at in servers.items()},
        "linger": {"key": KEY, "sessions": {"certificate": str(pem)}},
        "virtual_ips": {
            "api": {**router, "addresses": [f"{VIP}/24"], "sync_group": "api"},
            "api6": {**router, "addresses": [f"{VIP6}/64"], "sync_group": "api"},
        },
        **changes,
    }


class MigratingNode(LingerNode):
    """One node."""

    def migrated(self) -> Values:
        """Return the status of `migrate`, empty while it does not answer."""
        with contextlib.suppress(OSError, ValueError):
            return self.appliance.ask("migrate", "status")
        return {}


@contextlib.contextmanager
def migrating_nodes(
    count: int, directory: Path, **changes: object
) -> Iterator[tuple[Node, list[MigratingNode]]]:
    """Run so many nodes, the first of them active, and give a client and them."""
    pem = certificate(directory)
    with Segment() as segment, contextlib.ExitStack() as stack:
        client, server = segment.node("client"), segment.node("server")
        server.start([sys.executable, echoer.__file__, "server", str(SERVER_PORT)])
        nodes = [
            stack.enter_context(
                MigratingNode(segment.node(name), name, node_config(name, server, pem, **changes))
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
