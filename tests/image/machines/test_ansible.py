"""The Ansible role, by the real Ansible over ssh: two Debian machines with a real systemd become a pair."""

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Final

import pytest
from support.machines import podman
from support.machines.container_site import say
from support.machines.systemd_pair import NAMES, NEW, OLD, SystemdPair, systemd_pair
from support.processes.waiting import patient, wait_until

pytestmark = [
    pytest.mark.image,
    pytest.mark.needs(
        *("ansible-playbook", "podman", "runc", "mmdebstrap", "systemd-nspawn", "nsenter", "ip", "ssh"),
        root=True,
    ),
    pytest.mark.slow("makes two archives and boots systemd twice"),
    pytest.mark.timeout(3600),  # seven plays, each of minutes beside other work
]

_PLAYBOOK: Final = podman.ROOT / "image/ansible/site.yml"
_RECAP: Final = re.compile(r"^(\S+)\s+: ok=\d+\s+changed=(\d+)\s+unreachable=0\s+failed=0\s", re.MULTILINE)
_INVENTORY: Final = """\
appliances:
  hosts: {{ lb-0: {{ }}, lb-1: {{ }} }}
  vars:
    ansible_ssh_executable: {folder}/ssh
    appliance_config: {folder}/appliance.yaml
    appliance_files: {{ /etc/appliance/linger.key: {folder}/linger.key }}
"""


def _play(pair: SystemdPair, *arguments: str, release: str = OLD, check: bool = True) -> str:
    """Run the playbook; return what it prints."""
    command = ["ansible-playbook", "-i", str(pair.folder / "inventory.yml"), str(_PLAYBOOK)]
    command += ["-e", f"appliance_archive={pair.archive(release)}", *arguments]
    # A socket's name has at most 107 bytes, and ssh appends some: the folders of pytest are too long.
    with tempfile.TemporaryDirectory(prefix="lb-") as short, pair.client.inside():
        done = subprocess.run(
            command,
            env={
                **pair.environment,
                "ANSIBLE_NOCOLOR": "1",
                "ANSIBLE_PIPELINING": "1",
                "ANSIBLE_SSH_ARGS": f"-o ControlMaster=auto -o ControlPersist=5s -o ControlPath={short}/%C",
                "HOME": str(pair.folder),
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=patient(300),
        )
    assert (done.returncode == 0) is check, done.stdout + done.stderr
    return done.stdout


def _changed(pair: SystemdPair, *, release: str = OLD) -> dict[str, int]:
    """Run the playbook; return how many tasks have changed something on each machine."""
    found = {name: int(number) for name, number in _RECAP.findall(_play(pair, release=release))}
    assert set(found) == set(NAMES)
    return found


@pytest.mark.promise("docs/ansible.md", "it installs, configures and upgrades a pair, and ends no connection")
@pytest.mark.promise("docs/ansible.md", "a second run changes nothing")
@pytest.mark.promise("docs/ansible.md", "a wrong file changes nothing on any node")
def test_from_nothing_to_another_release(dist: Path, tmp_path: Path):
    """Install, again, look only, another server, a wrong file, another release: a session goes on."""
    with systemd_pair(dist, tmp_path) as pair:
        (tmp_path / "inventory.yml").write_text(_INVENTORY.format(folder=tmp_path))
        pair.configure("master-0")
        _play(pair, "--check", "--diff")
        assert not any((each.root / "opt/appliance").exists() for each in pair.machines.values())
        assert min(_changed(pair).values()) > 0
        wait_until(lambda: pair.answers() == "master-0", what="the pair serves", timeout=60.0)
        assert set(_changed(pair).values()) == {0}
        with pair.connect() as session:
            assert say(session, "before")

            before = pair.configuration("lb-0")
            pair.configure("master-1")
            assert "master-1" in _play(pair, "--check", "--diff")
            assert pair.configuration("lb-0") == pair.configuration("lb-1") == before
            assert min(_changed(pair).values()) > 0
            wait_until(lambda: pair.answers() == "master-1", what="the new server serves")

            before = pair.configuration("lb-0")
            pair.configure(wrong=f"{pair.server.address}:65536")
            assert re.search(r"<stdin>:3:\d+: .*`65536` is not a port", _play(pair, check=False))
            assert pair.configuration("lb-0") == pair.configuration("lb-1") == before

            pair.configure("master-1")
            assert min(_changed(pair, release=NEW).values()) > 0
            assert pair.versions() == {NEW}
            assert set(_changed(pair, release=NEW).values()) == {0}
            assert pair.answers() == "master-1"
            assert say(session, "after")
