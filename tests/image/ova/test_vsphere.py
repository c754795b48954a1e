"""The script that deploys a pair to vSphere, with govc and the simulator that govmomi has (vcsim)."""

import json
import os
import socket
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from support.machines.podman import ROOT
from support.network.ports import free_port
from support.processes.waiting import wait_until
from support.run import tools

from image.ova import archive
from image.ova.descriptor import Disk, Product, descriptor

_GOVC: Final = os.environ.get("GOVC") or tools.path("govc")
_VCSIM: Final = os.environ.get("VCSIM") or tools.path("vcsim")

pytestmark = [
    pytest.mark.programs,
    pytest.mark.skipif(
        not (_GOVC and _VCSIM),
        reason="no govc and vcsim, which Debian does not have: GOVC= and VCSIM= name them",
    ),
]

_PAIR: Final = """
ova = "{ova}"
cluster = "/DC0/host/DC0_C0"
rule = "lb-appliance"
datastore = "LocalDS_0"
folder = "/DC0/vm"
configuration = "{configuration}"
[networks]
clients = "VM Network"
servers = "DC0_DVPG0"
management = "DC0_DVPG0"
vrrp = "VM Network"
[properties]
gateway = "10.0.0.1"
page_password = "s3cret"
[machines.lb-1]
address = "10.0.0.11/24"
[machines.lb-2]
address = "10.0.0.12/24"
"""


@pytest.fixture
def vcenter() -> Iterator[dict[str, str]]:
    """Start a simulated vCenter; return what govc has in its environment for it."""
    port = free_port()
    simulator = subprocess.Popen([str(_VCSIM), "-l", f"127.0.0.1:{port}"], stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: _answers(port), what="the simulator listens", timeout=30)
        tools_first = f"{Path(str(_GOVC)).parent}{os.pathsep}{os.environ['PATH']}"
        url = f"https://user:pass@127.0.0.1:{port}/sdk"
        yield {**os.environ, "PATH": tools_first, "GOVC_URL": url, "GOVC_INSECURE": "1"}
    finally:
        simulator.kill()
        simulator.wait(10)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def ova(tmp_path: Path) -> Path:
    """An OVA with our descriptor; its disk is one of a megabyte."""
    folder = tmp_path / "parts"
    folder.mkdir()
    disk = folder / "lb-disk1.vmdk"
    made = ["qemu-img", "create", "-q", "-f", "vmdk", "-o", "subformat=streamOptimized", str(disk), "1M"]
    subprocess.run(made, check=True, timeout=60)
    form = folder / "lb.ovf"
    sizes = Disk(file=disk.name, size=disk.stat().st_size, capacity=1 << 20, populated=1 << 16)
    form.write_bytes(descriptor(Product(name="lb-appliance", version="0.2.0"), sizes))
    manifest = folder / "lb.mf"
    manifest.write_text(archive.manifest([form, disk]))
    made_of = tmp_path / "lb.ova"
    archive.write(made_of, [form, manifest, disk], epoch=0)
    assert tarfile.is_tarfile(made_of)
    return made_of


def _deploy(file: Path, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(ROOT / "image" / "vsphere" / "deploy.py"), str(file)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


def _govc(environment: dict[str, str], *arguments: str) -> Any:
    done = subprocess.run(
        [str(_GOVC), *arguments], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if "-json" in arguments else done.stdout


# The simulator leaves out a device of several configurations, where vSphere has it in each (DSP0243 s.9.8).
@pytest.mark.parametrize(("configuration", "adapters"), [("one", 1), ("four", 2)])
def test_a_pair_is_deployed(
    vcenter: dict[str, str], ova: Path, tmp_path: Path, configuration: str, adapters: int
):
    """Two machines with their properties and networks, kept apart by a rule; again, nothing changes."""
    file = tmp_path / "pair.toml"
    file.write_text(_PAIR.format(ova=ova, configuration=configuration))
    first = _deploy(file, vcenter)
    assert first.returncode == 0, first.stderr
    assert "lb-2: imported" in first.stdout
    for name, address in (("lb-1", "10.0.0.11/24"), ("lb-2", "10.0.0.12/24")):
        (machine,) = _govc(vcenter, "vm.info", "-json", name)["virtualMachines"]
        assert machine["runtime"]["powerState"] == "poweredOn"
        given = {each["id"]: each.get("value", "") for each in machine["config"]["vAppConfig"]["property"]}
        assert (given["hostname"], given["address"], given["page_password"]) == (name, address, "s3cret")
        devices = machine["config"]["hardware"]["device"]
        found = [each for each in devices if "macAddress" in each]
        assert len(found) == adapters
    assert _govc(vcenter, "cluster.rule.info", "-cluster", "DC0_C0", "-name", "lb-appliance")
    assert set(_govc(vcenter, "cluster.rule.ls", "-cluster", "DC0_C0", "-name", "lb-appliance").split()) >= {
        "lb-1", "lb-2"
    }  # fmt: skip
    again = _deploy(file, vcenter)
    assert (again.returncode, "imported" in again.stdout) == (0, False), again.stderr


def test_what_govc_refuses_is_said(vcenter: dict[str, str], ova: Path, tmp_path: Path):
    """A port group that is not there; a key that nobody knows is refused before anything is imported."""
    file = tmp_path / "pair.toml"
    file.write_text(_PAIR.format(ova=ova, configuration="four").replace("VM Network", "nowhere"))
    done = _deploy(file, vcenter)
    assert (done.returncode, "nowhere" in done.stderr) == (1, True), done.stderr
    file.write_text("datastor = 'a'\n" + _PAIR.format(ova=ova, configuration="four"))
    assert "unknown keys: ['datastor']" in _deploy(file, vcenter).stderr
