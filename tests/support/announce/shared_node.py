"""Nodes that serve a shared address at a time, each with a server that answers with the node's name."""

import contextlib
import sys
from collections.abc import Sequence
from typing import Final, Self

from support.announce.routers import ASN
from support.network import greeter
from support.network.namespaces import Node
from support.supervisor.appliance import Appliance, Values

from appliance.net.boards import heartbeats

ADDRESS: Final = "198.51.100.10"
ADDRESS6: Final = "2001:db8:10::10"
NODES_ASN: Final = 64512
PORT: Final = 9445
KEY: Final = "ab" * 32
_SERVER_PORT: Final = 7001


def config(
    routers: Sequence[str], *, peers: Sequence[str] = (), bgp: Values | None = None, **changes: object
) -> dict[str, object]:
    """Return the configuration of a node with these neighbours; with `peers`, connections are forwarded.

    It has an address of IPv6 if a router has one. `bgp` has more keys of that section.
    """
    addresses = [f"{ADDRESS}/32"]
    if any(":" in each for each in routers):
        addresses.append(f"{ADDRESS6}/128")
    found: dict[str, object] = {
        "api": {"frontends": {"kube-api": {"bind": [f"[::]:{PORT}"], "pool": "masters"}}},
        "pools": {
            "masters": {
                "check": {"type": "tcp", "interval": "1s", "fall": 1, "rise": 1},
                "servers": {"own": {"address": f"127.0.0.1:{_SERVER_PORT}"}},
            }
        },
        "defaults": {"drain": "2s"},
        "shared_ips": {
            "ingress": {
                "addresses": addresses,
                "track": {"servers": {"pool": "masters", "interval": "100ms"}},
                "drain": "1s",
            }
        },
        "bgp": {"asn": NODES_ASN, "neighbors": neighbors(routers), **(bgp or {})},
        **changes,
    }
    if peers:
        found["linger"] = {"key": KEY, "peers": list(peers)}
    return found


def neighbors(routers: Sequence[str], *, interval: str = "500ms") -> dict[str, object]:
    """Return the neighbours with these addresses, with BFD.

    The default is slow: with 100 ms, a node without processor time for 300 ms is dead to its router.
    """
    bfd = {"interval": interval, "multiplier": 3}
    return {f"tor-{number}": {"address": each, "asn": ASN, "bfd": bfd} for number, each in enumerate(routers)}


class SharedNode:
    """One node with a whole appliance and its server. Use it as a context manager."""

    def __init__(self, node: Node, name: str, config: dict[str, object]) -> None:
        self.node, self.name = node, name
        self.server = node.start([sys.executable, greeter.__file__, name, str(_SERVER_PORT)])
        with node.inside():
            self.appliance = Appliance(config)

    def __enter__(self) -> Self:
        with self.node.inside():
            self.appliance.__enter__()
        return self

    def __exit__(self, *given: object) -> None:
        self.appliance.__exit__(*given)

    def status(self) -> Values:
        """Return what `announce` answers, empty while it does not."""
        with contextlib.suppress(OSError, ValueError):
            return self.appliance.ask("announce", "status")
        return {}

    def state(self) -> str:
        """Return the state of the shared IP, "" while `announce` does not answer."""
        addresses = self.status().get("addresses")
        return str(addresses[0]["state"]) if isinstance(addresses, list) and addresses else ""

    def pid(self, heartbeat: str) -> int:
        """Return the process that writes a heartbeat."""
        found = heartbeats.read(self.appliance.paths.heartbeat(heartbeat))
        assert found is not None
        return found.pid

    def routes(self, table: int) -> list[str]:
        """Return the routes of both families in a table of the kernel, which need not be there."""
        shown = "\n".join(self.node.ip(family, "route", "show", "table", "all") for family in ("-4", "-6"))
        return [each for each in shown.splitlines() if f" table {table} " in each]
