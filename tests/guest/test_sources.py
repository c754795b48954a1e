"""The sources of properties: each is found, in their order, and what is broken is told and passed over."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from support.machines.guest import Guest, guest
from support.machines.ovf import environment

from appliance.guest.sources import LABEL, Found, ask
from appliance.model.guest.report import Origin

pytestmark = pytest.mark.programs

ONE, TWO, THREE = (environment({"lb.hostname": each}) for each in ("one", "two", "three"))


@pytest.fixture
def machine(tmp_path: Path) -> Guest:
    """Give a machine without any source."""
    return guest(tmp_path)


@pytest.fixture(autouse=True)
def _programs(machine: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{machine.programs}{os.pathsep}{os.environ['PATH']}")


def found(machine: Guest) -> Found:
    """Ask the machine's sources."""
    return ask(machine.root, {"CREDENTIALS_DIRECTORY": str(machine.credentials)})


def disk(machine: Guest, target: Path) -> None:
    """Give the machine a disk of the label."""
    link = machine.root / "dev/disk/by-label" / LABEL
    link.parent.mkdir(parents=True)
    link.symlink_to(target)


def iso(machine: Guest, tmp_path: Path, content: bytes | None) -> Path:
    """Give the machine an ISO whose mounting is imitated; returns the log of what was called."""
    inside, log, device = tmp_path / "inside", tmp_path / "log", tmp_path / "sr0"
    inside.mkdir()
    device.touch()
    if content is not None:
        (inside / "OVF-ENV.XML").write_bytes(content)
    source, calls = shlex.quote(str(inside)), shlex.quote(str(log))
    machine.program(
        "mount", f'echo "mount $*" >>{calls}\nfor last; do :; done\ncp {source}/* "$last"/ 2>&- || true'
    )
    machine.program("umount", f'echo "umount $*" >>{calls}\nfor last; do :; done\nrm -f "$last"/*')
    disk(machine, device)
    return log


def test_nothing_is_found_where_there_is_nothing(machine: Guest):
    """Without VMware, credential and ISO there is no problem, and nothing said."""
    assert found(machine) == Found(origin=Origin.NONE, written={})
    assert ask(machine.root, {}).origin is Origin.NONE


def test_the_first_that_answers_wins(machine: Guest, tmp_path: Path):
    """VMware's tool before the credential before the ISO."""
    iso(machine, tmp_path, THREE)
    assert (found(machine).origin, found(machine).written) == (Origin.ISO, {"lb.hostname": "three"})
    machine.credential(TWO)
    assert (found(machine).origin, found(machine).data) == (Origin.CREDENTIAL, TWO)
    machine.vmware({"lb.hostname": "one"})
    assert (found(machine).origin, found(machine).written) == (Origin.VMWARE, {"lb.hostname": "one"})
    assert found(machine).problems == ()


def test_a_source_without_our_properties_is_passed_over(machine: Guest):
    """VSphere has an environment for machines without properties too."""
    machine.vmware({})
    machine.credential(TWO)
    assert found(machine).origin is Origin.CREDENTIAL


def test_a_source_whose_properties_are_all_misspelt_is_told(machine: Guest):
    """Nothing of it can be used, and who wrote it learns why."""
    machine.vmware({"lb.hostnam": "one", "lb.adress": "10.0.0.11/24"})
    assert found(machine).origin is Origin.NONE
    assert "did you mean `hostname`?" in found(machine).problems[0].message
    assert len(found(machine).problems) == 2


def test_a_tool_that_hangs_or_cannot_be_run_is_told(machine: Guest):
    """Else old properties would be taken for new ones, without a word."""
    machine.program("vmware-rpctool", "exec sleep 30")
    machine.credential(TWO)
    answer = ask(machine.root, {"CREDENTIALS_DIRECTORY": str(machine.credentials)}, timeout=0.1)
    assert answer.origin is Origin.CREDENTIAL
    assert "has not answered for 0.1 s" in answer.problems[0].message
    (machine.programs / "vmware-rpctool").write_text("no program")
    assert "Exec format error" in found(machine).problems[0].message


@pytest.mark.parametrize("answer", ["printf 'No value found'", "exit 1", "true"])
def test_what_the_tool_says_instead_is_no_environment(machine: Guest, answer: str):
    """It fails at once where there is no VMware, or nothing is set."""
    machine.program("vmware-rpctool", answer)
    machine.credential(TWO)
    assert found(machine).origin is Origin.CREDENTIAL


def test_a_broken_source_is_told_and_the_next_one_asked(machine: Guest):
    """What answers and cannot be read is a problem with its place."""
    machine.program("vmware-rpctool", "echo '<!DOCTYPE x><Environment/>'")
    machine.credential(TWO)
    assert found(machine).origin is Origin.CREDENTIAL
    assert [each.message for each in found(machine).problems] == [
        "the OVF environment (guestinfo.ovfEnv) has a DOCTYPE, which an OVF environment never has"
    ]


def test_an_unreadable_credential_is_told(machine: Guest):
    """A directory in its place is an error of ours, not of the properties."""
    (machine.credentials / "lb.ovfenv").mkdir()
    assert "Is a directory" in found(machine).problems[0].message


def test_the_iso_is_mounted_so_that_nothing_on_it_can_act(machine: Guest, tmp_path: Path):
    """Read-only, without programs and devices, in a folder that is gone afterwards."""
    log = iso(machine, tmp_path, THREE)
    assert found(machine).origin is Origin.ISO
    mounted, unmounted = log.read_text().splitlines()
    assert mounted.startswith("mount -t iso9660 -o ro,nosuid,nodev,noexec ")
    directory = mounted.split()[-1]
    assert unmounted == f"umount --lazy {directory}"
    assert not Path(directory).exists()


def test_an_iso_without_the_file_is_told(machine: Guest, tmp_path: Path):
    """It has the label, so it was meant."""
    log = iso(machine, tmp_path, None)
    assert found(machine).problems[0].message == "the OVF environment (ISO, ovf-env.xml) is not there"
    assert "umount" in log.read_text()


def test_an_iso_that_cannot_be_mounted_is_told(machine: Guest, tmp_path: Path):
    """With the words of mount, or ours where it cannot be run."""
    iso(machine, tmp_path, THREE)
    machine.program("mount", "echo 'mount: bad medium' >&2; exit 32")
    assert "bad medium" in found(machine).problems[0].message
    (machine.programs / "mount").write_text("no program")
    assert "cannot be read" in found(machine).problems[0].message


@pytest.mark.needs("genisoimage", root=True)
def test_a_real_iso_is_read(machine: Guest, tmp_path: Path):
    """As vSphere and administrators make them."""
    if "iso9660" not in Path("/proc/filesystems").read_text():
        pytest.skip("this kernel has no iso9660: the test that boots the VM has")
    (tmp_path / "ovf-env.xml").write_bytes(THREE)
    image = tmp_path / "x.iso"
    words = ["genisoimage", "-quiet", "-J", "-R", "-V", "OVF ENV", "-o", str(image)]
    subprocess.run([*words, str(tmp_path / "ovf-env.xml")], check=True, capture_output=True)
    disk(machine, image)
    assert (found(machine).origin, found(machine).data) == (Origin.ISO, THREE)
