"""A virtual machine's file system in a folder, its properties, and programs in place of others."""

import json
import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner, Result
from support.machines.ovf import environment

from appliance.console.command import main


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """The machine `root`, its programs in `programs` (first on PATH), and its credentials."""

    root: Path
    programs: Path
    credentials: Path

    @property
    def yaml(self) -> Path:
        """The appliance's configuration."""
        return self.root / "etc/appliance/appliance.yaml"

    def device(self, name: str, *, index: int, kind: int = 1, virtual: bool = False) -> None:
        """Add a network interface as sysfs has it."""
        directory = self.root / "sys/class/net" / name
        directory.mkdir(parents=True)
        for file, text in (("type", kind), ("ifindex", index), ("address", f"00:50:56:00:00:{index:02x}")):
            (directory / file).write_text(f"{text}\n")
        if not virtual:
            (directory / "device").mkdir()

    def program(self, name: str, script: str) -> None:
        """Put a shell script where a program is looked for."""
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def vmware(self, properties: dict[str, str]) -> None:
        """Have VMware's tool answer with these properties."""
        document = shlex.quote(environment(properties).decode())
        script = f'[ "$*" = "info-get guestinfo.ovfEnv" ] || exit 2\nprintf "%s\\n" {document}'
        self.program("vmware-rpctool", script)

    def credential(self, data: bytes) -> None:
        """Give the systemd credential."""
        (self.credentials / "lb.ovfenv").write_bytes(data)

    def run(self, *arguments: str) -> Result:
        """Run `appliance guest ...` for this machine."""
        path = f"{self.programs}{os.pathsep}{os.environ['PATH']}"
        settings = {"PATH": path, "CREDENTIALS_DIRECTORY": str(self.credentials)}
        return CliRunner().invoke(main, ["guest", *arguments], env=settings)

    def apply(self, *arguments: str) -> Result:
        """Apply the properties below the root."""
        return self.run("apply", "--root", str(self.root), *arguments)

    def report(self) -> dict[str, object]:
        """Return the report as it lies there."""
        return dict(json.loads((self.root / "run/appliance/guest.json").read_text()))

    def problems(self) -> list[str]:
        """Return the messages of the report's problems."""
        return [each["message"] for each in self.report()["problems"]]  # type: ignore[attr-defined]  # JSON

    def read(self, name: str) -> str:
        """Return a file of the machine."""
        return (self.root / name).read_text()


def guest(directory: Path) -> Guest:
    """Return a machine with one interface and nothing said to it."""
    made = Guest(root=directory / "root", programs=directory / "bin", credentials=directory / "credentials")
    for each in (made.root, made.programs, made.credentials):
        each.mkdir()
    made.device("lo", index=1, kind=772, virtual=True)
    made.device("ens192", index=2)
    made.program("vmware-rpctool", "echo 'Failed to query hypervisor' >&2; exit 1")
    return made
