"""The Ansible role, from an administrator's machine over ssh: two Debian machines with a real systemd."""

import re
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from support.machines import podman
from support.machines.container_site import say
from support.machines.systemd_machine import SystemdMachine, systemd_machine
from support.network.namespaces import Node, Segment
from support.peers.backend import Backend
from support.processes.waiting import wait_until
from support.supervisor.other_release import other_release
from support.supervisor.release_key import ReleaseKey

pytestmark = [
    pytest.mark.image,
    pytest.mark.needs(
        *("ansible-playbook", "podman", "runc", "mmdebstrap", "systemd-nspawn", "nsenter", "ip", "ssh"),
        root=True,
    ),
    pytest.mark.slow("makes two archives and boots systemd twice"),
]

_ROLE: Final = podman.ROOT / "image/ansible"
_VIP: Final = "192.0.2.100"
_PORT: Final = 9445
_OLD, _NEW = "9.9.8", "9.9.9"
_NAMES: Final = ("lb-0", "lb-1")
_RECAP: Final = re.compile(r"^(\S+)\s+: ok=\d+\s+changed=(\d+)\s+unreachable=0\s+failed=0\s", re.MULTILINE)
_NOTHING_OF_OURS: Final = """
userdel appliance
rm -rf /opt/appliance /opt/lb-appliance-* /etc/systemd/system/appliance.service* /etc/appliance \
  /usr/local/bin/appliance /usr/local/bin/supervisorctl /var/lib/appliance
ssh-keygen -A
systemctl daemon-reload
systemctl restart ssh
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Site:
    """The administrator's files, the pair, and two servers."""

    folder: Path
    client: Node
    machines: Mapping[str, SystemdMachine]
    nodes: Mapping[str, Node]
    servers: Mapping[str, Backend]
    at: str

    def configure(self, **servers: str) -> None:
        """Write the configuration, with these servers and their addresses."""
        listed = ", ".join(f'{name}: {{ address: "{address}" }}' for name, address in servers.items())
        nodes = ", ".join(f"{name}: {{ address: {node.address} }}" for name, node in self.nodes.items())
        (self.folder / "appliance.yaml").write_text(
            f"nodes: {{ {nodes} }}\n"
            'api: { frontends: { kube-api: { bind: ["[::]:9445"], pool: masters } } }\n'
            f"pools: {{ masters: {{ check: {{ type: tcp, interval: 1s }}, servers: {{ {listed} }} }} }}\n"
            "virtual_ips:\n"
            f"  api: {{ addresses: [{_VIP}/24], interface: eth0, router_id: 42, prefer: lb-0 }}\n"
            'linger: { key: "file:/etc/appliance/linger.key" }\n'
        )

    def play(self, *arguments: str, release: str = _OLD, check: bool = True) -> str:
        """Run the playbook; return what it prints."""
        command = ["ansible-playbook", "-i", str(self.folder / "inventory.yml"), str(_ROLE / "site.yml")]
        command += ["-e", f"appliance_archive={self.folder}/lb-appliance-{release}.tar.gz", *arguments]
        with self.client.inside():
            done = subprocess.run(
                ["env", "ANSIBLE_NOCOLOR=1", f"HOME={self.folder}", *command],
                capture_output=True,
                text=True,
                check=False,
                timeout=900,
            )
        assert (done.returncode == 0) is check, done.stdout + done.stderr
        return done.stdout

    def changed(self, *arguments: str, release: str = _OLD) -> dict[str, int]:
        """Run the playbook; return how many tasks have changed something on each machine."""
        found = {name: int(number) for name, number in _RECAP.findall(self.play(*arguments, release=release))}
        assert set(found) == set(_NAMES)
        return found

    def connect(self) -> socket.socket:
        """Return a connection to the virtual IP."""
        with self.client.inside():
            return socket.create_connection((_VIP, _PORT), timeout=30)

    def answers(self) -> str:
        """Return which server answers a new connection, "" for none."""
        try:
            with self.connect() as connection:
                return say(connection, "who").split()[0]
        except (OSError, IndexError):
            return ""

    def file(self, name: str) -> str:
        """Return the configuration of a node."""
        return (self.machines[name].root / "etc/appliance/appliance.yaml").read_text()


@pytest.fixture
def site(dist: Path, tmp_path: Path) -> Iterator[_Site]:
    """Two machines on which nothing of ours is; the administrator has two signed releases."""
    key = ReleaseKey(tmp_path / "key")
    for version in (_OLD, _NEW):
        key.sign(other_release(dist, version, tmp_path, signers=key.line))
    (tmp_path / "linger.key").write_text("ab" * 32)
    with Segment() as segment, ExitStack() as stack:
        nodes = {name: segment.node(name) for name in _NAMES}
        client, place = segment.node("client"), segment.node("servers")
        with place.inside():
            servers = {
                name: stack.enter_context(Backend(name, port=6443 + number))
                for number, name in enumerate(("master-0", "master-1"))
            }
        files = {
            "etc/ssh/sshd_config.d/10-root.conf": "PermitRootLogin prohibit-password\n",
            "root/.ssh/authorized_keys": key.path.with_suffix(".pub").read_text(),
        }
        machines, hosts = {}, {}
        for name, node in nodes.items():
            (tmp_path / name).mkdir()
            machines[name] = stack.enter_context(systemd_machine(tmp_path / name, files, network=node.name))
            machines[name].run("sh", "-c", _NOTHING_OF_OURS)
            hosts[name] = f"{name}: {{ ansible_host: {node.address} }}"
        (tmp_path / "inventory.yml").write_text(
            "appliances:\n"
            f"  hosts: {{ {', '.join(hosts.values())} }}\n"
            "  vars:\n"
            "    ansible_user: root\n"
            f"    ansible_ssh_private_key_file: {key.path}\n"
            "    ansible_ssh_common_args: -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null\n"
            f"    appliance_config: {tmp_path}/appliance.yaml\n"
            f"    appliance_files: {{ /etc/appliance/linger.key: {tmp_path}/linger.key }}\n"
        )
        yield _Site(
            folder=tmp_path, client=client, machines=machines, nodes=nodes, servers=servers, at=place.address
        )


@pytest.mark.promise("docs/ansible.md", "it installs, configures and upgrades a pair, and ends no connection")
@pytest.mark.promise("docs/ansible.md", "a second run changes nothing")
@pytest.mark.promise("docs/ansible.md", "a wrong file changes nothing on any node")
def test_from_nothing_to_another_release(site: _Site):
    """Install, again, look only, another server, a wrong file, another release: a session goes on."""
    first, second = f"{site.at}:6443", f"{site.at}:6444"
    site.configure(**{"master-0": first})
    assert min(site.changed().values()) > 0
    wait_until(lambda: site.answers() == "master-0", what="the pair serves", timeout=60.0)
    assert set(site.changed().values()) == {0}
    with site.connect() as session:
        assert say(session, "before")

        before = site.file("lb-0")
        site.configure(**{"master-1": second})
        assert "master-1" in site.play("--check", "--diff")
        assert site.file("lb-0") == site.file("lb-1") == before
        assert min(site.changed().values()) > 0
        wait_until(lambda: site.answers() == "master-1", what="the new server serves")

        site.configure(**{"master-1": f"{site.at}:65536"})
        before = site.file("lb-0")
        printed = site.play(check=False)
        assert re.search(r"<stdin>:3:\d+: .*`65536` is not a port", printed)
        assert site.file("lb-0") == site.file("lb-1") == before

        site.configure(**{"master-1": second})
        assert min(site.changed(release=_NEW).values()) > 0
        assert {each.says("appliance", "--version").split()[-1] for each in site.machines.values()} == {_NEW}
        assert set(site.changed(release=_NEW).values()) == {0}
        assert site.answers() == "master-1"
        assert say(session, "after")
