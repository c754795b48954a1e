"""Nodes that serve the same shared addresses, whose sessions move between them; the server is elsewhere."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from support.linger.linger_field import SERVER_PORT, listed
from support.linger.shared_field import OUTSIDE, OUTSIDE6, SHARED, SHARED6, SharedField
from support.migrate.migrate_field import certificate
from support.network import echoer
from support.network.checked_streams import CheckedStreams
from support.network.namespaces import INTERFACE
from support.processes.waiting import wait_until
from support.supervisor.appliance import Values

PORTS: Final = {SHARED: 9445, SHARED6: 9446}
_SERVER: Final = 2  # its number outside
_ROUTER: Final = 254
_SOURCES: Final = {"one": "16384-31999", "two": "32000-46999", "three": "47000-60999"}


class SharedMigrateField(SharedField):
    """The nodes, their router, the client, and beside it the server. Use it as a context manager."""

    def __init__(self, count: int, directory: Path) -> None:
        self._pem = certificate(directory)
        super().__init__(count)
        server = self._outside.node("server")
        server.batch(
            f"address flush dev {INTERFACE} scope global",
            f"address add {OUTSIDE}.{_SERVER}/24 dev {INTERFACE}",
            f"address add {OUTSIDE6}:{_SERVER}/64 dev {INTERFACE} nodad",
            f"route add default via {OUTSIDE}.{_ROUTER}",
            f"route add default via {OUTSIDE6}:{_ROUTER}",
        )
        server.start([sys.executable, echoer.__file__, "server", str(SERVER_PORT)])

    def config(self, name: str, *more: str) -> dict[str, object]:
        """Return a node's configuration: its sessions connect to the server from the shared address."""
        found = super().config(name, *more)
        pool = {
            "check": {"type": "tcp", "interval": "1s"},
            "source": "virtual-ip",
            "source_ports": _SOURCES[name],
        }
        servers = {"four": f"{OUTSIDE}.{_SERVER}", "six": f"[{OUTSIDE6}:{_SERVER}]"}
        return {
            **found,
            "api": {
                "workers": 1,
                "frontends": {
                    "four": {"bind": [f"0.0.0.0:{PORTS[SHARED]}"], "pool": "four"},
                    "six": {"bind": [f"[::]:{PORTS[SHARED6]}"], "pool": "six"},
                },
            },
            "pools": {
                family: {**pool, "servers": {family: {"address": f"{host}:{SERVER_PORT}"}}}
                for family, host in servers.items()
            },
            "defaults": {"drain": "30s"},
            "linger": {**found["linger"], "sessions": {"certificate": str(self._pem)}},  # type: ignore[dict-item]  # a section is a mapping
        }

    def migrated(self, name: str) -> Values:
        """Return the status of `migrate`, empty while it does not answer."""
        with contextlib.suppress(OSError, ValueError):
            return self.nodes[name].appliance.ask("migrate", "status")
        return {}

    def knows(self, name: str, other: str) -> bool:
        """Return whether a node knows another one by its name."""
        return any(each["name"] == other for each in listed(self.nodes[name].status(), "nodes"))

    def sessions(self, name: str) -> int:
        """Return how many sessions of shared addresses a node has."""
        found = self.nodes[name].appliance.command("sessions", "--json")
        return found.stdout.count('"frontend"')

    def announces(self, name: str) -> bool:
        """Return whether routers would learn an address from a node."""
        with contextlib.suppress(OSError, ValueError):
            found = listed(self.nodes[name].appliance.ask("announce", "status"), "addresses")
            return any(each["state"] in ("serving", "drained") for each in found)
        return False

    def leave(self, name: str) -> None:
        """Have a node leave, and its router forget it as soon as it announces nothing."""
        appliance, rest = self.nodes[name].appliance, [each for each in self.machines if each != name]
        appliance.command("leave")
        wait_until(lambda: not self.announces(name), what=f"{name} announces nothing")
        self.route(*rest)
        with self.machines[name].inside():  # whose connections it counts
            sys.stderr.write(appliance.command("leave", "--within", "60s").stderr)


@contextlib.contextmanager
def shared_streams(field: SharedMigrateField, count: int) -> Iterator[tuple[CheckedStreams, ...]]:
    """Open so many streams to each address."""
    with contextlib.ExitStack() as stack:
        found = []
        for address, port in PORTS.items():
            streams = stack.enter_context(CheckedStreams(field.client, port=port, period=0.1))
            streams.connect(address, count)
            found.append(streams)
        yield tuple(found)
