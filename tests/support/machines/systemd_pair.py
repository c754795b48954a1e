"""Two Debian machines with a real systemd and sshd, which are to become a pair, and their administrator.

They have the virtual machine's files without anything of ours. The administrator has two signed releases,
reaches the machines as root by `lb-0` and `lb-1`, and is a client too.
"""

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.machines.container_site import say
from support.machines.systemd_machine import SystemdMachine, systemd_machine
from support.network.namespaces import Node, Segment
from support.peers.backend import Backend
from support.run import tools
from support.supervisor.other_release import other_release
from support.supervisor.release_key import ReleaseKey

VIP: Final = "192.0.2.100"
PORT: Final = 9445
OLD: Final = "9.9.8"
NEW: Final = "9.9.9"
NAMES: Final = ("lb-0", "lb-1")
SERVERS: Final = {"master-0": 6443, "master-1": 6444}
"""The servers, and their ports."""

_NOTHING_OF_OURS: Final = """
userdel appliance
rm -rf /opt/appliance /opt/lb-appliance-* /etc/systemd/system/appliance.service* /etc/appliance \
  /usr/local/bin/appliance /usr/local/bin/supervisorctl /var/lib/appliance
ssh-keygen -A
systemctl daemon-reload
systemctl restart ssh
"""
_SSH_CONFIG: Final = """\
Host {name}
  HostName {address}
  User root
  IdentityFile {key}
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemdPair:
    """The administrator's `folder`, with `appliance.yaml` and `linger.key`, and the machines; `key` signs."""

    folder: Path
    key: ReleaseKey
    client: Node
    machines: Mapping[str, SystemdMachine]
    nodes: Mapping[str, Node]
    server: Node

    @property
    def config(self) -> Path:
        """Return the administrator's configuration file."""
        return self.folder / "appliance.yaml"

    @property
    def environment(self) -> dict[str, str]:
        """The administrator's: `ssh` knows the machines."""
        return {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"}

    def archive(self, version: str) -> Path:
        """Return the archive of a release."""
        return self.folder / f"lb-appliance-{version}.tar.gz"

    def configure(self, *servers: str, **more: str) -> None:
        """Write the configuration with these servers, and with others at these addresses."""
        at = {**{name: f"{self.server.address}:{SERVERS[name]}" for name in servers}, **more}
        listed = ", ".join(f'{name}: {{ address: "{address}" }}' for name, address in at.items())
        nodes = ", ".join(f"{name}: {{ address: {node.address} }}" for name, node in self.nodes.items())
        self.config.write_text(
            f"nodes: {{ {nodes} }}\n"
            f'api: {{ frontends: {{ kube-api: {{ bind: ["[::]:{PORT}"], pool: masters }} }} }}\n'
            f"pools: {{ masters: {{ check: {{ type: tcp, interval: 1s }}, servers: {{ {listed} }} }} }}\n"
            "virtual_ips:\n"
            f"  api: {{ addresses: [{VIP}/24], interface: eth0, router_id: 42, prefer: lb-0 }}\n"
            'linger: { key: "file:/etc/appliance/linger.key" }\n'
        )

    def configuration(self, name: str) -> str:
        """Return the configuration that a node has."""
        return (self.machines[name].root / "etc/appliance/appliance.yaml").read_text()

    def versions(self) -> set[str]:
        """Return the releases that are installed."""
        return {each.says("appliance", "--version").split()[-1] for each in self.machines.values()}

    def connect(self) -> socket.socket:
        """Return a connection of the client to the virtual IP."""
        with self.client.inside():
            return socket.create_connection((VIP, PORT), timeout=30)

    def answers(self) -> str:
        """Return which server answers a new connection, "" for none."""
        try:
            with self.connect() as connection:
                return say(connection, "who").partition(" ")[0]
        except OSError:
            return ""


@contextmanager
def systemd_pair(dist: Path, folder: Path) -> Iterator[SystemdPair]:
    """Boot the machines; `dist` is the archive that the releases are made of."""
    key = ReleaseKey(folder / "key")
    for version in (OLD, NEW):
        key.sign(other_release(dist, version, folder, signers=key.line))
    (folder / "linger.key").write_text("ab" * 32)
    files = {
        "etc/ssh/sshd_config.d/10-root.conf": "PermitRootLogin prohibit-password\n",
        "root/.ssh/authorized_keys": key.path.with_suffix(".pub").read_text(),
    }
    with Segment() as segment, ExitStack() as stack:
        nodes = {name: segment.node(name) for name in NAMES}
        client, server = segment.node("client"), segment.node("servers")
        with server.inside():
            for name, port in SERVERS.items():
                stack.enter_context(Backend(name, port=port))
        machines = {}
        for name, node in nodes.items():
            (folder / name).mkdir()
            machines[name] = stack.enter_context(systemd_machine(folder / name, files, network=node.name))
            machines[name].run("sh", "-c", _NOTHING_OF_OURS)
        known = [_SSH_CONFIG.format(name=name, address=nodes[name].address, key=key.path) for name in NAMES]
        (folder / "ssh_config").write_text("".join(known))
        (folder / "ssh").write_text(f'#!/bin/sh\nexec {tools.path("ssh")} -F {folder}/ssh_config "$@"\n')
        (folder / "ssh").chmod(0o755)
        yield SystemdPair(
            folder=folder, key=key, client=client, machines=machines, nodes=nodes, server=server
        )
