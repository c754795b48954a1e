"""Commands about containers and the virtual machine are run by image/test_readme.py, or have a reason."""

import re
from typing import Final

import pytest
from support.documents.pages import ROOT, page
from support.machines.fresh_machine import commands

pytestmark = pytest.mark.pure

_INSTALLING: Final = page("installing")
_OF_IMAGE: Final = (ROOT / "image" / "README.md").read_text()
_NOT_RUN: Final = {
    "make image ova DEBIAN_SNAPSHOT=": "it needs a registry; test_cold_builds.py builds twice without",
    "make image CA=": "its files are examples; machines/podman.py builds with secrets of this machine",
    "make sbom": "test_sbom.py runs it, with this machine's base image",
    "cp image/appliance.container": "systemd does not run here; other tests run with the unit's settings",
    "cp image/appliance-pids.container": "the same; test_container_upgrade.py has their settings",
    "ln -s appliance@.container": "the same",
    "rm /etc/containers/systemd": "the same",
    "systemctl": "systemd does not run here; other tests run with the unit's settings",
    "install -d -o 9445": "the runtime directory is the test's: test_readme_of_an_upgrade",
    "govc": "it needs a vSphere",
    "export GOVC_URL": "the same; test_vsphere.py has a simulator",
    "python3 image/vsphere/deploy.py": "the same",
    "butane": "test_platforms.py runs it, where it can be had",
    "oc apply": "it needs an OpenShift",
    "curl -k https://API_VIP": "of the virtual machine: test_ova.py asks its virtual IP, with the authority",
    "ovftool": "it needs a vSphere",
    "sudo systemctl enable --now apt": "in the virtual machine, and it needs a mirror, which no test's has",
    "printf": "in the virtual machine, and of no use without a mirror",
    "sudo appliance upgrade": "in the virtual machine: test_systemd_upgrade.py",
}


def _shown() -> list[str]:
    headings = re.findall(r"^## (.*)$", _OF_IMAGE, re.MULTILINE)
    of_image = [command for heading in headings for command in commands(_OF_IMAGE, heading)]
    return [*commands(_INSTALLING, "As a container"), *of_image]


@pytest.mark.parametrize("command", sorted({each for each in _shown() if not each.startswith("podman")}))
def test_a_command_that_is_not_run_has_its_reason(command: str):
    """It begins as one of the list does."""
    assert [start for start in _NOT_RUN if command.startswith(start)], "run it, or say why not"


def test_each_reason_is_of_a_command():
    """What the pages no longer have is in no list."""
    assert [start for start in _NOT_RUN if not any(each.startswith(start) for each in _shown())] == []
