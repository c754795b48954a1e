"""Files for other platforms say what the unit of systemd says; the platforms' own tools take them."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from support.machines.podman import ROOT
from support.run import tools

pytestmark = [pytest.mark.programs]

_IMAGE: Final = ROOT / "image"
_BUTANE: Final = os.environ.get("BUTANE") or tools.path("butane")
_COMPOSE: Final = os.environ.get("COMPOSE") or tools.path("docker-compose")
_TERRAFORM: Final = tools.path("terraform")
_butane = pytest.mark.skipif(not _BUTANE, reason="no butane, which Debian does not have: BUTANE= names one")


def _compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((_IMAGE / "compose.yaml").read_text())["services"]["appliance"]
    return found


def test_compose_starts_what_the_unit_starts():
    """The same capabilities, and the two by which a process that starts as root becomes another user."""
    unit = (_IMAGE / "appliance.container").read_text()
    given = {
        word for line in re.findall(r"^AddCapability=(.*)$", unit, re.MULTILINE) for word in line.split()
    }
    service = _compose()
    assert set(service["cap_add"]) == given | {"SETUID", "SETGID"}
    assert (service["cap_drop"], service["read_only"], service["network_mode"]) == (["ALL"], True, "host")
    assert service["stop_grace_period"].removesuffix("s") == re.findall(r"--stop-timeout=(\d+)", unit)[0]


@pytest.mark.skipif(not _COMPOSE, reason="no docker-compose (Debian: docker-compose); COMPOSE= names one")
def test_compose_is_valid():
    """Compose itself reads it, with the variables that it takes."""
    environment = {**os.environ, "IMAGE": "registry.example.com/lb:1", "CONFIGURATION": "/srv/lb"}
    command = [str(_COMPOSE), "--file", str(_IMAGE / "compose.yaml"), "config"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    service = yaml.safe_load(done.stdout)["services"]["appliance"]
    assert service["image"] == "registry.example.com/lb:1"
    assert "/srv/lb:/etc/appliance:ro,z" in service["volumes"]


def _rendered(name: str, folder: Path) -> dict[str, Any]:
    """Return what butane makes of a file of ours, in a folder with those that an operator adds."""
    files = folder / "image"
    shutil.copytree(_IMAGE, files, symlinks=True)
    (files / "coreos" / "id.pub").write_text("ssh-ed25519 AAAA you\n")
    (files / "coreos" / "appliance.yaml").write_text("api: {}\n")
    command = [str(_BUTANE), "--strict", "--files-dir", str(files), str(files / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = yaml.safe_load(done.stdout)
    return found


@_butane
def test_coreos_gets_unit_and_configuration(tmp_path: Path):
    """Ignition takes it, and the configuration is readable for the user of the image alone."""
    found = _rendered("coreos/appliance.bu", tmp_path)
    files = {each["path"]: each for each in found["storage"]["files"]}
    assert files["/etc/appliance/appliance.yaml"]["group"] == {"id": 9445}
    assert files["/etc/appliance/appliance.yaml"]["mode"] == 0o640
    assert "/etc/containers/systemd/appliance.container" in files


@_butane
@pytest.mark.parametrize("pod", ["haproxy", "keepalived", "kube-vip"])
def test_masters_get_a_pod_by_machine_config(tmp_path: Path, pod: str):
    """The machine-config operator gets a MachineConfig with the pod as the kubelet reads it."""
    found = _rendered(f"openshift/{pod}.bu", tmp_path)
    assert (found["kind"], found["metadata"]["name"]) == ("MachineConfig", f"99-master-lb-{pod}")
    paths = {each["path"] for each in found["spec"]["config"]["storage"]["files"]}
    assert any(each.startswith("/etc/kubernetes/manifests/") for each in paths)


def test_coreos_and_openshift_name_files_that_are_there():
    """Every local file of ours exists; two are the operator's."""
    sources = [*(_IMAGE / "coreos").glob("*.bu"), *(_IMAGE / "openshift").glob("*.bu")]
    assert len(sources) == 4
    named = {name for each in sources for name in re.findall(r"local: (\S+?) }", each.read_text())}
    assert {name for name in named if not (_IMAGE / name).exists()} == {"coreos/appliance.yaml"}


@pytest.mark.skipif(not _TERRAFORM, reason="no terraform, which Debian does not have")
def test_terraform_is_formatted():
    """Which parses all of it; its provider is not to be had without a network."""
    command = [str(_TERRAFORM), "fmt", "-check", "-diff", str(_IMAGE / "vsphere" / "terraform")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_terraform_deploys_what_the_script_does():
    """The example has the same networks, properties and machines as pair.toml."""
    import tomllib  # noqa: PLC0415  # for this test alone

    wanted = tomllib.loads((_IMAGE / "vsphere" / "pair.toml").read_text())
    text = (_IMAGE / "vsphere" / "terraform" / "terraform.tfvars.example").read_text()
    said = dict(re.findall(r'^ *([\w-]+) += ("[^"]*")$', text, re.MULTILINE))
    assert {key: json.loads(value) for key, value in said.items() if key in wanted["properties"]} == wanted[
        "properties"
    ]
    assert {key: json.loads(said[key]) for key in wanted["networks"]} == wanted["networks"]
