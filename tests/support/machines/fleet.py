"""Two whole appliances on loopback with one configuration, each behind an sshd of its own.

`appliance fleet` runs as on an administrator's machine: OpenSSH's client finds `lb-0` and `lb-1` by a
configuration of its own, which a script `ssh` at the front of PATH gives it.
"""

import getpass
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml
from support.network.ports import free_port
from support.peers.backend import Backend
from support.peers.sshd import Sshd, sshd
from support.processes.waiting import patient, wait_until
from support.run import tools
from support.supervisor.appliance import Appliance

NAMES: Final = ("lb-0", "lb-1")
_COMMANDS: Final = Path(sys.executable).parent


class NamedAppliance(Appliance):
    """An appliance on a node of that name."""

    def __init__(self, name: str, config: Mapping[str, object]) -> None:
        super().__init__(config)
        self.name = name

    @property
    def environment(self) -> dict[str, str]:
        """The environment, with the name of the node."""
        return {**super().environment, "APPLIANCE_NODE": self.name}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The nodes and their sshds by name; `file` is the configuration that both have at first.

    `ports` are those of the frontend of each, behind which is a `support.peers.backend`.
    """

    folder: Path
    nodes: Mapping[str, Appliance]
    sshds: Mapping[str, Sshd]
    file: Path
    ports: Mapping[str, int]

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the administrator, who is on no node."""
        return {
            **os.environ,
            "PATH": f"{self.folder}:{_COMMANDS}:{os.environ['PATH']}",
            "APPLIANCE_CONFIG": str(self.file),
            "APPLIANCE_RUNTIME_DIR": str(self.folder / "nothing"),
        }

    def command(self, *arguments: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        """Run `appliance fleet`."""
        with self.started(*arguments) as process:
            output, errors = process.communicate(timeout=patient(120))
        assert not check or process.returncode == 0, f"{arguments}: {process.returncode}\n{output}{errors}"
        return subprocess.CompletedProcess(arguments, process.returncode, output, errors)

    def started(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start `appliance fleet`."""
        return subprocess.Popen(
            [_COMMANDS / "appliance", "fleet", *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def answer(self, *arguments: str) -> dict[str, object]:
        """Return what a command prints with --json, whether all is well or not."""
        done = self.command(*arguments, "--json", check=False)
        assert done.stdout, done.stderr
        found: dict[str, object] = json.loads(done.stdout)
        return found

    def write(self, **changes: object) -> Path:
        """Write the configuration with changes into a new file, and return that."""
        path = self.folder / "pushed.yaml"
        path.write_text(yaml.safe_dump({**yaml.safe_load(self.file.read_text()), **changes}))
        return path

    @contextmanager
    def otherwise(self, name: str, setting: str) -> Iterator[None]:
        """Have the configuration of OpenSSH's client say something else about a node first."""
        config = self.folder / "ssh_config"
        before = config.read_text()
        config.write_text(f"Host {name}\n  {setting}\n{before}")
        yield
        config.write_text(before)

    def unreachable(self, name: str) -> AbstractContextManager[None]:
        """Have nothing listen where OpenSSH's client looks for a node."""
        return self.otherwise(name, "Port 1")

    @contextmanager
    def stopped(self, name: str, program: str = "reload") -> Iterator[None]:
        """Have a program of a node hang."""
        pid = wait_until(lambda: self.nodes[name].program_pid(program), what=f"{program} answers")
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def replace_command(self, name: str, script: str) -> None:
        """Have a script be the command `appliance` of a node, $REAL the one that it stands before."""
        path = self.folder / name / "appliance"
        path.write_text(f"#!/bin/sh\nREAL={_COMMANDS}/appliance\n{script}\n")
        path.chmod(0o755)

    def texts(self) -> list[str]:
        """Return the configuration file of each node."""
        return [each.paths.config.read_text() for each in self.nodes.values()]


@contextmanager
def fleet(folder: Path) -> Iterator[Fleet]:
    """Run both, with one frontend whose port differs by node."""
    with Backend("master-0") as backend, ExitStack() as stack:
        ports = {name: free_port() for name in NAMES}
        config: dict[str, object] = {
            "nodes": {name: {} for name in NAMES},
            "watchdog": "300s",  # a program that a test stops stays so
            "api": {
                "workers": 1,
                "frontends": {
                    "kube-api": {
                        "bind": {name: [f"127.0.0.1:{ports[name]}"] for name in NAMES},
                        "pool": "masters",
                    }
                },
            },
            "pools": {"masters": {"servers": {"master-0": {"address": f"127.0.0.1:{backend.port}"}}}},
        }
        file = folder / "appliance.yaml"
        file.write_text(yaml.safe_dump(config))
        nodes, sshds, lines = {}, {}, []
        for name in NAMES:
            node = nodes[name] = NamedAppliance(name, config)
            node.paths.config.write_bytes(file.read_bytes())
            stack.enter_context(node)
            root = folder / name
            root.mkdir()
            settings = {
                **node.paths.environment(),
                "APPLIANCE_NODE": name,
                "PATH": f"{root}:{_COMMANDS}:{os.environ['PATH']}",
            }
            server = sshds[name] = stack.enter_context(sshd(root, settings))
            options = {"HostName": "127.0.0.1", "User": getpass.getuser(), **server.options}
            lines += [f"Host {name}", *(f"  {key} {value}" for key, value in options.items())]
        (folder / "ssh_config").write_text("\n".join(lines) + "\n")
        script = folder / "ssh"
        script.write_text(f'#!/bin/sh\nexec {tools.path("ssh")} -F {folder}/ssh_config "$@"\n')
        script.chmod(0o755)
        yield Fleet(folder=folder, nodes=nodes, sshds=sshds, file=file, ports=ports)
