"""`appliance upgrade FILE` on the virtual machine's files, with a real systemd: there, back, and refused."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.machines.container_site import say
from support.machines.systemd_machine import SystemdMachine, systemd_machine
from support.network.namespaces import Node, Segment
from support.peers.backend import Backend
from support.supervisor.other_release import other_release
from support.supervisor.release import DIES
from support.supervisor.release_key import ReleaseKey

import appliance

pytestmark = [
    pytest.mark.image,
    pytest.mark.needs("podman", "runc", "mmdebstrap", "systemd-nspawn", "nsenter", "ip", root=True),
    pytest.mark.slow("makes two archives and boots systemd"),
]

_UNIT = "appliance.service"
_PORT, _SERVER = 9445, 6443
_FIRST = f"lb-appliance-{appliance.__version__}"
_NEWER, _BROKEN = "9.9.9", "9.9.10"
_LONG = 120.0
_SEVERAL_MINUTES = 600.0


def _yaml(server: Node) -> str:
    return f"""\
api:
  frontends:
    kube-api: {{ bind: ["[::]:{_PORT}"], pool: masters }}
pools:
  masters: {{ check: {{ type: tcp }}, servers: {{ master-0: {{ address: "{server.address}:{_SERVER}" }} }} }}
"""


class _Machine:
    """The machine and a client of it; releases lie in its folder /root."""

    def __init__(self, inner: SystemdMachine, node: Node, client: Node, key: ReleaseKey) -> None:
        self.inner, self._node, self._client = inner, node, client
        self.key = key
        (signers,) = inner.root.glob(
            f"opt/{_FIRST}/lib/python3*/site-packages/appliance/config/release-signers"
        )
        signers.write_text(key.line)

    def connect(self) -> socket.socket:
        """Return a connection of the client."""
        with self._client.inside():
            return socket.create_connection((self._node.address, _PORT), timeout=30)

    def upgrade(self, *arguments: str, check: bool = True) -> str:
        """Run `appliance upgrade` as root, and return what it says."""
        done = self.inner.run("appliance", "upgrade", *arguments, check=False, timeout=_SEVERAL_MINUTES)
        assert (done.returncode == 0) is check, f"{done.stdout}{done.stderr}"
        assert check or done.returncode == 1
        return done.stdout + done.stderr

    def version(self) -> str:
        """Return the version of the `appliance` command, which is that of the next start."""
        return self.inner.says("appliance", "--version").split()[-1]

    def running(self) -> str:
        """Return the folder of the release that systemd's main process is of."""
        words = self.inner.says("cat", f"/proc/{self.inner.show(_UNIT, 'MainPID')}/cmdline").split("\0")
        return Path(words[0]).parts[2] if words[0] else ""

    def releases(self) -> list[str]:
        """Return what is installed."""
        return sorted(self.inner.says("sh", "-c", "ls -d /opt/lb-appliance-* /opt/tmp* 2>/dev/null").split())


@pytest.fixture
def machine(dist: Path, tmp_path: Path) -> Iterator[_Machine]:
    """A machine that serves, with archives of two other releases."""
    with Segment() as segment:
        node, client, servers = (segment.node(name) for name in ("machine", "client", "servers"))
        with servers.inside():
            server = Backend("master-0", port=_SERVER)
        folder = tmp_path / "machine"
        folder.mkdir()
        files = {"etc/appliance/appliance.yaml": _yaml(servers)}
        with server, systemd_machine(folder, files, network=node.name) as inner:
            made = _Machine(inner, node, client, ReleaseKey(tmp_path / "key"))
            signers = made.key.line
            for version, changes in ((_NEWER, {}), (_BROKEN, {"programs/worker.py": DIES})):
                archive = other_release(dist, version, inner.root / "root", changes=changes, signers=signers)
                made.key.sign(archive)
            inner.run("systemctl", "start", _UNIT)
            yield made


def _archive(version: str) -> str:
    return f"/root/lb-appliance-{version}.tar.gz"


def test_an_upgrade_and_the_way_back(machine: _Machine):
    """A session goes on through both and through one that fails; a restart starts what is in charge then."""
    with machine.connect() as session:
        assert say(session, "before").endswith("before")
        assert f"Version {_NEWER} is in charge" in machine.upgrade(_archive(_NEWER))
        assert say(session, "after").endswith("after")
        assert machine.running() == f"lb-appliance-{_NEWER}"
        assert machine.version() == _NEWER
        assert "it does not like this machine" in machine.upgrade(_archive(_BROKEN), check=False) + _log(
            machine
        )
        assert say(session, "still").endswith("still")
        assert machine.releases() == [f"/opt/{_FIRST}", f"/opt/lb-appliance-{_NEWER}"]
        assert machine.version() == _NEWER
        assert f"Version {appliance.__version__} is in charge" in machine.upgrade("--back")
        assert say(session, "back").endswith("back")
        assert machine.running() == _FIRST
    assert machine.inner.show(_UNIT, "NRestarts") == "0"
    machine.inner.run("systemctl", "restart", _UNIT)
    assert machine.running() == _FIRST


def _log(machine: _Machine) -> str:
    return machine.inner.says("journalctl", "--unit", _UNIT, "--output", "cat", "--no-pager")


def test_archives_that_change_nothing(machine: _Machine, tmp_path: Path):
    """Damaged, cut, unsigned, another key, no way back: an error with its reason, and nothing is left."""
    inner, archive = machine.inner, _archive(_NEWER)
    before = inner.show(_UNIT, "MainPID")
    inner.run("sh", "-c", f"cp {archive} /root/damaged.tar.gz && printf x >> /root/damaged.tar.gz")
    inner.run("sh", "-c", f"head -c 100000 {archive} > /root/cut.tar.gz")
    inner.run("sh", "-c", f"cp {archive}.sha256 /root/damaged.tar.gz.sha256")
    assert "its SHA-256 is" in machine.upgrade("/root/damaged.tar.gz", check=False)
    assert "damaged" in machine.upgrade("/root/cut.tar.gz", "--unsigned", check=False)
    inner.run("sh", "-c", f"rm /root/damaged.tar.gz.sha256; cp {archive}.sig /root/damaged.tar.gz.sig")
    assert "its signature is of other content" in machine.upgrade("/root/damaged.tar.gz", check=False)
    assert "it is not signed" in machine.upgrade("/root/cut.tar.gz", check=False)
    ReleaseKey(tmp_path / "other").sign(inner.root / "root" / "cut.tar.gz")
    assert "does not know: SHA256:" in machine.upgrade("/root/cut.tar.gz", check=False)
    assert "64 hexadecimal digits" in machine.upgrade(archive, "--sha256", "abc", check=False)
    assert "its SHA-256 is" in machine.upgrade(archive, "--sha256", "0" * 64, check=False)
    assert "No such file" in machine.upgrade("/root/nothing.tar.gz", check=False)
    assert "no former release is kept" in machine.upgrade("--back", check=False)
    assert machine.releases() == [f"/opt/{_FIRST}"]
    assert (inner.show(_UNIT, "MainPID"), machine.version()) == (before, appliance.__version__)
    with machine.connect() as session:
        assert say(session, "served").endswith("served")
