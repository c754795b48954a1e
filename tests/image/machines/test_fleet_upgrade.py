"""`appliance fleet upgrade` of a pair with a virtual IP, under load, by real sshds and systemds."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from support.load.load import Load
from support.machines.systemd_pair import NEW, OLD, PORT, VIP, SystemdPair, systemd_pair
from support.processes.waiting import patient, wait_until

pytestmark = [
    pytest.mark.image,
    pytest.mark.needs(*("podman", "runc", "mmdebstrap", "systemd-nspawn", "nsenter", "ip", "ssh"), root=True),
    pytest.mark.slow("makes two archives and boots systemd twice"),
]

_SESSIONS, _RATE = 500, 300.0
_INSTALL: Final = f"""
tar xf /root/lb-appliance-{OLD}.tar.gz --directory /root
/root/lb-appliance-{OLD}/install
install -o appliance -m 0400 /root/linger.key /root/appliance.yaml /etc/appliance/
mkdir -p /etc/systemd/system/appliance.service.d
printf '[Service]\\nEnvironment=APPLIANCE_NODE=%s\\n' "$1" >/etc/systemd/system/appliance.service.d/node.conf
systemctl daemon-reload
systemctl enable --now appliance
"""


def _install(pair: SystemdPair) -> None:
    for name, machine in pair.machines.items():
        for file in (pair.archive(OLD), pair.folder / "linger.key", pair.config):
            shutil.copy(file, machine.root / "root")
        machine.run("sh", "-ec", _INSTALL, "sh", name)


def _fleet(pair: SystemdPair, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run `appliance fleet` in the administrator's network."""
    with pair.client.inside():
        return subprocess.run(
            [Path(sys.executable).with_name("appliance"), "fleet", *arguments, "--config", str(pair.config)],
            env=pair.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=patient(300),
        )


@pytest.mark.promise("docs/fleet.md", "an upgrade of a pair with a virtual IP ends and refuses nothing")
def test_a_virtual_ip_is_served_throughout(dist: Path, tmp_path: Path):
    """Each node leaves, is upgraded and is back, while clients connect to the virtual IP."""
    with systemd_pair(dist, tmp_path) as pair:
        pair.configure("master-0", "master-1")
        _install(pair)
        wait_until(lambda: _fleet(pair, "status").returncode == 0, what="the pair is well", timeout=90.0)
        with (
            pair.client.inside(),
            Load(host=VIP, port=PORT, sessions=_SESSIONS, rate=_RATE) as load,
        ):
            load.wait_for_sessions()
            done = _fleet(pair, "upgrade", str(pair.archive(NEW)), "--unsigned", "--timeout", "200")
            assert done.returncode == 0, done.stdout + done.stderr
            assert pair.versions() == {NEW}
            report = load.report()
        assert (report.failures, report.ended) == ({}, [])
        assert len(report.living) == _SESSIONS
        assert report.completed > _RATE
