"""`appliance fleet --via podman`: a pair of containers on nodes that real sshds lead to."""

import getpass
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import yaml
from support.machines import podman
from support.machines.container_site import VIP, Site
from support.machines.podman import ROOT, Container, quadlet
from support.peers.sshd import sshd
from support.processes.waiting import patient, wait_until
from support.run import tools

pytestmark = [
    pytest.mark.image,
    pytest.mark.needs("podman", "runc", "mmdebstrap", "ip", "ssh", "sshd", root=True),
    pytest.mark.slow("two containers, several pushes"),
]

_USER: Final = 9445
_NAMES: Final = ("lb-0", "lb-1")
_PODMAN: Final = """\
#!/bin/sh
# Two nodes on one machine: the container that both call `appliance` has an id of its own.
[ "$1 $2 $3" = "exec --interactive appliance" ] || exit 99
shift 3
exec {podman} exec --interactive {id} "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The containers by node, and the administrator's folder."""

    around: Site
    folder: Path
    containers: dict[str, Container]

    def fleet(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run `appliance fleet --via podman`."""
        return subprocess.run(
            [Path(sys.executable).with_name("appliance"), "fleet", "--via", "podman", *arguments],
            env={
                **os.environ,
                "PATH": f"{self.folder}:{os.environ['PATH']}",
                "APPLIANCE_CONFIG": str(self.folder / "appliance.yaml"),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=patient(120),
        )

    def write(self, drain: str) -> Path:
        """Write the file of both nodes, with this drain time."""
        nodes = dict(zip(_NAMES, (self.around.one, self.around.two), strict=True))
        config = self.around.config(drain=drain)
        routers = config["virtual_ips"]
        assert isinstance(routers, dict)
        routers["api"] = {**routers["api"], "priority": {"lb-0": 150, "lb-1": 100}}
        config["nodes"] = {name: {"address": node.address} for name, node in nodes.items()}
        file = self.folder / "appliance.yaml"
        file.write_text(yaml.safe_dump(config))
        return file

    def configuration(self, name: str) -> str:
        """Return the file that a node has."""
        return (self.folder / name / "etc" / "appliance.yaml").read_text()


@pytest.fixture
def pair(around: Site, tmp_path: Path) -> Iterator[Pair]:
    """Run both containers, as the unit that we ship has them, but with a folder that they may write."""
    made = Pair(around=around, folder=tmp_path, containers={})
    file = made.write("5s")
    lines: list[str] = []
    with ExitStack() as stack:
        for name, node in zip(_NAMES, (around.one, around.two), strict=True):
            etc = tmp_path / name / "etc"
            etc.mkdir(parents=True)
            (tmp_path / name).chmod(0o755)
            (etc / "appliance.yaml").write_bytes(file.read_bytes())
            for each in (etc, etc / "appliance.yaml"):
                os.chown(each, _USER, _USER)
            made.containers[name] = stack.enter_context(
                Container(
                    *("--network", f"ns:/run/netns/{node.name}", "--env", f"APPLIANCE_NODE={name}"),
                    *(*quadlet(ROOT / "image" / "appliance.container"), "--volume", f"{etc}:/etc/appliance"),
                )
            )
            command = tmp_path / name / "podman"
            command.write_text(_PODMAN.format(podman=tools.path("podman"), id=made.containers[name].id))
            command.chmod(0o755)
            settings = {
                "PATH": f"{tmp_path / name}:{os.environ['PATH']}",
                "CONTAINERS_CONF": str(podman.configuration()),
            }
            server = stack.enter_context(sshd(tmp_path / name, settings))
            options = {"HostName": "127.0.0.1", "User": getpass.getuser(), **server.options}
            lines += [f"Host {name}", *(f"  {key} {value}" for key, value in options.items())]
        (tmp_path / "ssh_config").write_text("\n".join(lines) + "\n")
        (tmp_path / "ssh").write_text(f'#!/bin/sh\nexec {tools.path("ssh")} -F {tmp_path}/ssh_config "$@"\n')
        (tmp_path / "ssh").chmod(0o755)
        yield made


@pytest.mark.promise("docs/fleet.md", "containers are reached by `--via podman`")
def test_a_pair_of_containers(pair: Pair):
    """Status, a push, servers, support; a container that is stopped is named, and gets the file later."""
    wait_until(lambda: pair.fleet("status").returncode == 0, what="all is well", timeout=90.0, pause=1.0)
    found = json.loads(pair.fleet("status", "--json").stdout)["nodes"]
    assert [(each["name"], each["holds"]) for each in found] == [("lb-0", ["api"]), ("lb-1", [])]
    wait_until(lambda: pair.around.who(VIP), what="the virtual IP is served", timeout=60.0)

    text = pair.write("6s").read_text()
    pushed = pair.fleet("push", str(pair.folder / "appliance.yaml"))
    assert pushed.returncode == 0, pushed.stdout + pushed.stderr
    assert [pair.configuration(name) for name in _NAMES] == [text, text]
    drained = pair.fleet("drain", "masters/master-0")
    assert drained.stdout.count("masters/master-0: drain") == 2, drained.stderr
    assert pair.around.who(VIP) == "master-1"
    assert pair.fleet("ready", "masters/master-0").returncode == 0
    kept = pair.fleet("support", str(pair.folder / "ticket"))
    assert kept.returncode == 0, kept.stderr
    for name in _NAMES:
        with tarfile.open(pair.folder / "ticket" / f"{name}.tar.gz") as archive:
            assert any(each.endswith("status.json") for each in archive.getnames())
    refused = pair.fleet("upgrade", "--back")
    assert (refused.returncode, "replaced by one of another image" in refused.stderr) == (2, True)

    before = text
    text = pair.write("7s").read_text()
    pair.containers["lb-1"].stop(20)
    pushed = pair.fleet("push", str(pair.folder / "appliance.yaml"))
    assert pushed.returncode == 1
    assert "lb-1: not reached (" in pushed.stdout
    assert [pair.configuration(name) for name in _NAMES] == [text, before]
    podman.podman("start", pair.containers["lb-1"].id)
    wait_until(
        lambda: pair.fleet("push", str(pair.folder / "appliance.yaml")).returncode == 0,
        what="it gets the file",
        timeout=60.0,
        pause=1.0,
    )
    assert pair.configuration("lb-1") == text
