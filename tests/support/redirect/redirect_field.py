"""A master whose API server has port 6443, an appliance on it that redirects the virtual IPs, and clients."""

import contextlib
import ctypes
import fcntl
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.network import greeter
from support.network.namespaces import INTERFACE, Node, Segment
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance, Values

VIPS: Final = ("192.0.2.200", "192.0.2.201", "fd00::200", "fd00::201")
API_PORT: Final = 6443
LB_PORT: Final = 9445
API_SERVER: Final = "api-server"
SERVER: Final = "server"
_SERVER_PORT: Final = 7001

MONITORS_RULES: Final = """
table ip ocp_nat {
  chain ocp_prerouting {
    type nat hook prerouting priority -100;
    ip daddr 192.0.2.200 meta l4proto tcp tcp dport 6443 dnat to 192.0.2.200:9445 \\
      comment "OCP_API_LB_REDIRECT"
  }
  chain ocp_output {
    type nat hook output priority -100;
    ip daddr 192.0.2.200 meta l4proto tcp tcp dport 6443 oifname "lo" redirect to :9445 \\
      comment "OCP_API_LB_REDIRECT"
  }
}
"""
"""What OpenShift's monitor makes (baremetal-runtimecfg, pkg/monitor/nftables_linux.go)."""


def endpoint(address: str, port: int = API_PORT) -> str:
    """Return how an operator writes it."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def config(*, port: int = LB_PORT, **redirect: object) -> dict[str, object]:
    """Return a configuration whose frontend redirects the four virtual IPs, with quick looks."""
    given = {"from": [endpoint(each) for each in VIPS], "interval": "200ms", "rise": 2, "fall": 3}
    frontend = {"bind": [f"[::]:{port}"], "pool": "masters", "redirect": {**given, **redirect}}
    check = {"type": "tcp", "interval": "200ms"}
    return {
        "api": {"workers": 2, "frontends": {"kube-api": frontend}},
        "pools": {"masters": {"check": check, "servers": {"m": {"address": f"127.0.0.1:{_SERVER_PORT}"}}}},
        "defaults": {"drain": "1s"},
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class RedirectField:
    """A master with four virtual IPs, its API server and a server of the pool; and a client elsewhere."""

    master: Node
    client: Node
    server: "subprocess.Popen[bytes]"

    @contextmanager
    def appliance(
        self, *, port: int = LB_PORT, through: Sequence[str] = (), **redirect: object
    ) -> Iterator[Appliance]:
        """Run an appliance on the master; `through` is a command that takes a command."""
        with contextlib.ExitStack() as stack:
            with self.master.inside():
                running = Appliance(config(port=port, **redirect))
                running.start(through=through)
            stack.push(running)
            yield running

    def session(self, address: str, *, node: Node | None = None) -> socket.socket:
        """Return an open connection to the API's port, whose greeting has been read."""
        with (node or self.client).inside():
            connection = socket.create_connection((address, API_PORT), timeout=10)
        assert connection.recv(100) == f"{SERVER}\n".encode()
        return connection

    def nft(self, *arguments: str, rules: str = "") -> str:
        """Run nft on the master."""
        if rules:
            with tempfile.NamedTemporaryFile("w", suffix=".nft") as file:
                file.write(rules)
                file.flush()
                return self.master.run(["nft", "-f", file.name])
        return self.master.run(["nft", *arguments])

    def ask(self, address: str, *, node: Node | None = None, port: int = API_PORT) -> str:
        """Return who answers a new connection, or the error."""
        command = [sys.executable, "-c", _ASK, address, str(port)]
        return (node or self.client).run(command).strip()

    def serve(self, node: Node, name: str, port: int) -> None:
        """Start a server that says its name, on every address of a node."""
        _serve(node, name, port)

    def start_server(self) -> "subprocess.Popen[bytes]":
        """Start the pool's server again."""
        return _serve(self.master, SERVER, _SERVER_PORT)


_SIOCETHTOOL: Final = 0x8946  # linux/sockios.h
_ETHTOOL_STXCSUM: Final = 0x17  # linux/ethtool.h
_ASK: Final = """
import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=10) as connection:
        print(connection.recv(100).decode().strip() or "!lost")
except OSError as error:
    print(f"!{type(error).__name__}")
"""


def _serve(node: Node, name: str, port: int) -> "subprocess.Popen[bytes]":
    started = node.start([sys.executable, str(Path(greeter.__file__)), name, str(port)])
    wait_until(lambda: f":{port} " in node.run(["ss", "-Hntl"]), what=f"{name} listens")
    return started


@contextmanager
def redirect_field() -> Iterator[RedirectField]:
    """Make one."""
    with Segment() as segment:
        master, client = segment.node("master"), segment.node("client")
        master.batch(
            *(
                f"address add {each}/{'128 ' if ':' in each else '32'} dev {INTERFACE}"
                + (" nodad" if ":" in each else "")
                for each in VIPS
            )
        )
        _serve(master, API_SERVER, API_PORT)
        server = _serve(master, SERVER, _SERVER_PORT)
        yield RedirectField(master=master, client=client, server=server)


def without_checksum_offload(node: Node) -> None:
    """Have a node compute the checksums of what it sends, so that they are looked at (SIOCETHTOOL)."""
    value = ctypes.create_string_buffer(struct.pack("II", _ETHTOOL_STXCSUM, 0))
    request = struct.pack("16sP", INTERFACE.encode(), ctypes.addressof(value))
    with node.inside(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCETHTOOL, request)


def state(appliance: Appliance) -> str:
    """Return the state of the frontend's redirect."""
    return str(redirect(appliance)["state"])


def redirect(appliance: Appliance) -> Values:
    """Return what the program tells of the frontend's redirect."""
    answer = appliance.ask("redirect", "status")
    found: Values = answer["redirects"][0]  # type: ignore[index]  # JSON
    return found


def wait_for_state(appliance: Appliance, wanted: str) -> None:
    """Wait until the frontend's redirect is in a state."""
    wait_until(lambda: _state_or_none(appliance) == wanted, what=f"the redirect is {wanted}", timeout=30.0)


def _state_or_none(appliance: Appliance) -> str | None:
    with contextlib.suppress(OSError, ValueError, LookupError):
        return state(appliance)
    return None
