"""A machine with podman and nothing of ours: what a README says is run on it word for word.

It has podman's storage, /etc and a network namespace of its own. Images come from this machine's storage, so
that nothing is pulled that is there. What this machine lacks is put in by podman's own configuration, and no
command is changed for it: a build gets authorities and pip's settings by volumes of containers.conf.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

from support.machines import podman
from support.network.namespaces import Node
from support.processes.processes import end

_PUBLIC_BASE: Final = "docker.io/library/debian:bookworm-slim"
_FOR_BUILDS: Final = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf")
_HOLD: Final = """
set -e
mount -t overlay overlay -o 'lowerdir={1},upperdir={0}/etc,workdir={0}/etc.work' /etc
rm -rf /etc/appliance
mkdir /etc/appliance
echo ready
exec sleep infinity
"""


def commands(text: str, heading: str) -> list[str]:
    """Return what the console blocks below a heading have an operator type."""
    section = re.split(r"^## ", text, flags=re.MULTILINE)
    (wanted,) = (each for each in section if each.partition("\n")[0] == heading)
    blocks = re.findall(r"```console\n(.*?)```", wanted, re.DOTALL)
    return [command for block in blocks for command in _typed(block)]


def _typed(block: str) -> Iterator[str]:
    """Return the lines after a prompt, each with those that continue it."""
    yield from re.findall(r"^\$ ((?:.*\\\n)*.*)$", block, re.MULTILINE)


class FreshMachine:
    """Runs commands in a shell, from the root of the checkout."""

    def __init__(self, folder: Path, node: Node, *, etc: Path = Path("/etc")) -> None:
        """Have it in a folder, with the network of a node; its /etc is another, with nothing of ours."""
        self._folder = folder
        self._etc = etc
        self._node = node

    def __enter__(self) -> Self:
        for name in ("etc", "etc.work"):
            (self._folder / name).mkdir()
        self._holder = subprocess.Popen(
            [
                "unshare",
                "--mount",
                "--propagation",
                "private",
                "sh",
                "-c",
                _HOLD.format(self._folder, self._etc),
            ],
            stdout=subprocess.PIPE,
        )
        try:
            assert self._holder.stdout
            assert self._holder.stdout.readline() == b"ready\n"
            self._write_configuration()
            self.run(f"podman tag {podman.base_image()} {_PUBLIC_BASE}")
        except BaseException:
            end(self._holder, patience=5.0)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.run("podman rm --all --force --time 0; podman volume rm --all --force", check=False)
        end(self._holder, patience=5.0)
        shutil.rmtree(self._folder / "storage", ignore_errors=True)

    def run(self, command: str, *, check: bool = True) -> "subprocess.CompletedProcess[str]":
        """Run a command as it stands; a build has this machine's network, to reach a package index."""
        building = command.startswith("podman build")
        shell = ("sh", "-c", f"cd '{podman.ROOT}'\n{command}")
        network = [] if building else [f"--net=/run/netns/{self._node.name}"]
        done = subprocess.run(
            ["nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", *network, *shell],
            env=podman.environment(
                CONTAINERS_CONF=str(self._folder / f"{'build' if building else 'run'}.conf"),
                CONTAINERS_STORAGE_CONF=str(self._folder / "storage.conf"),
            ),
            capture_output=True,
            text=True,
            check=False,
            timeout=podman.BUILD,
        )
        assert not check or done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done

    def configure(self, text: str) -> None:
        """Write the configuration of its appliance."""
        written = self._folder / "appliance.yaml"
        written.write_text(text)
        self.run(f"chmod 0755 /etc/appliance && install --mode 0644 {written} /etc/appliance/")

    def _write_configuration(self) -> None:
        there = [path for path in _FOR_BUILDS if Path(path).exists()]
        volumes = ", ".join(f'"{path}:{path}:ro"' for path in there)
        usual = podman.configuration().read_text()
        build = usual.replace("[containers]", f'[containers]\nnetns = "host"\nvolumes = [{volumes}]')
        (self._folder / "run.conf").write_text(usual)
        (self._folder / "build.conf").write_text(build)
        (self._folder / "storage.conf").write_text(
            "[storage]\n"
            'driver = "overlay"\n'
            f'graphroot = "{self._folder}/storage"\n'
            f'runroot = "{self._folder}/run"\n'
            "[storage.options]\n"
            f'additionalimagestores = ["{podman.storage()}"]\n'
        )
