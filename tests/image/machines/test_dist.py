"""`make dist`: what it makes installs without a registry, upgrades, and goes back."""

import subprocess
import sys
from pathlib import Path

import pytest
from support.machines import podman

import appliance

pytestmark = [
    pytest.mark.image,
    pytest.mark.needs("unshare", root=True),
    pytest.mark.slow("makes the archive and installs it"),
]

_NAME = f"lb-appliance-{appliance.__version__}"
_MACHINE = """
set -e
mount -t tmpfs opt /opt
mount -t tmpfs bin /usr/local/bin
mkdir {folder}/etc && cp -a /etc/passwd /etc/group /etc/shadow /etc/gshadow /etc/login.defs {folder}/etc
mount --bind {folder}/etc /etc
{commands}
"""
"""A machine with nothing of ours: its own /opt, /usr/local/bin and /etc, and a network without anything."""


@pytest.fixture(scope="module")
def folder(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give what an operator has after unpacking the archive, made from this checkout."""
    node = tmp_path_factory.mktemp("node")
    subprocess.run(["tar", "xf", dist, "-C", node], check=True)
    return node / _NAME


def on_a_machine(folder: Path, tmp_path: Path, commands: str) -> str:
    """Run commands on a machine of its own and return what they print; a failure raises."""
    script = _MACHINE.format(folder=tmp_path, commands=commands.format(folder=folder, name=_NAME))
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "--net", "sh", "-c", script],
        env={"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.promise("docs/installing.md", "the archive installs without a registry")
def test_it_installs_without_a_registry(folder: Path, tmp_path: Path):
    """One command makes the venv, the user, the links and the unit, in a network that reaches nobody."""
    said = on_a_machine(
        folder,
        tmp_path,
        """
        {folder}/install
        appliance --version
        supervisorctl --help | head -1
        getent passwd appliance
        cat /etc/systemd/system/appliance.service
        appliance schema > /dev/null
        """,
    )
    assert f"appliance {appliance.__version__}" in said
    assert ":/var/lib/appliance:" in said
    assert "ExecStart=/usr/local/bin/appliance run" in said


def test_the_next_step_is_what_is_still_missing(folder: Path, tmp_path: Path):
    """Without a configuration, writing one comes before the start; with one, the start is next."""
    said = on_a_machine(
        folder,
        tmp_path,
        """
        {folder}/install
        touch /etc/appliance/appliance.yaml
        {folder}/install
        """,
    )
    steps = [line.split("Next: ")[1].split(";")[0] for line in said.splitlines()]
    start = "systemctl enable --now appliance"
    assert steps == [f"write /etc/appliance/appliance.yaml, then {start}", start]


@pytest.mark.promise("docs/getting-started.md", "the archive's maker has the command `appliance`")
def test_the_command_is_made_beside_the_archive(dist: Path):
    """`make dist` alone, without the demo before it, leaves the command that pushes to the nodes."""
    command = [dist.parent / "venv-run/bin/appliance", "fleet", "push", "--help"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "Usage: appliance fleet push" in done.stdout


def test_the_checksum_lies_beside_it(dist: Path):
    """`sha256sum --check` finds the archive as it was made."""
    subprocess.run(["sha256sum", "--check", f"{dist.name}.sha256"], cwd=dist.parent, check=True)


def test_a_second_run_makes_the_same(dist: Path, tmp_path: Path):
    """Archive and wheel are equal, bit by bit, in another folder and with other rights of new files."""
    made = ["make", "dist", f"DIST={tmp_path}", f"VENV={dist.parent}/venv", f"PYTHON={sys.executable}"]
    subprocess.run(made, cwd=podman.ROOT, check=True, capture_output=True, umask=0o077)
    for name in (dist.name, f"{dist.name}.sha256"):
        assert (tmp_path / name).read_bytes() == (dist.parent / name).read_bytes()


def test_the_next_version_stands_beside_the_last(folder: Path, tmp_path: Path):
    """An upgrade changes one link, and installing from the older folder changes it back."""
    said = on_a_machine(
        folder,
        tmp_path,
        """
        {folder}/install > /dev/null
        cp -r {folder} {folder}-next
        {folder}-next/install > /dev/null
        readlink /opt/appliance
        appliance --version
        {folder}/install > /dev/null
        readlink /opt/appliance
        ls /opt
        """,
    )
    assert said.split() == [
        f"{_NAME}-next", "appliance", appliance.__version__, _NAME, "appliance", _NAME, f"{_NAME}-next",
    ]  # fmt: skip


def test_a_damaged_part_is_refused(folder: Path, tmp_path: Path):
    """A file that is not what was locked installs nothing, and what ran before goes on."""
    said = on_a_machine(
        folder,
        tmp_path,
        """
        {folder}/install > /dev/null
        cp -r {folder} {folder}-damaged
        for part in {folder}-damaged/click-*.whl; do printf x >> $part; done
        ! {folder}-damaged/install 2>&1
        readlink /opt/appliance
        appliance --version
        """,
    )
    assert "do not match the hashes" in said.replace("DO NOT MATCH THE HASHES", "do not match the hashes")
    assert said.split()[-3:] == [_NAME, "appliance", appliance.__version__]
