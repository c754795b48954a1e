"""A machine on which commands of a page are typed: a network and files of its own, and a service.

/etc is this machine's with an empty /etc/appliance; /run and /var/lib are empty, and so is the directory in
which commands are typed. systemd does not run on it: who types `systemctl` starts and stops the appliance as
its unit would.
"""

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

from support.network.namespaces import Node
from support.processes.processes import end
from support.processes.waiting import patient, wait_until
from support.supervisor.release import NotOurChild

_COMMANDS: Final = Path(sys.executable).parent
_PATIENCE: Final = 60.0
_STOP: Final = 30.0
_HOLD: Final = """
set -e
hostname {1}
mount -t overlay overlay -o 'lowerdir=/etc,upperdir={0}/etc,workdir={0}/etc.work' /etc
rm -rf /etc/appliance
mkdir /etc/appliance
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib
echo ready
exec sleep infinity
"""


class TypedMachine:
    """One machine; `folder` holds its files, and has its host name."""

    def __init__(self, node: Node, folder: Path) -> None:
        self.node = node
        self._folder = folder
        self._service: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        for name in ("etc", "etc.work", "home"):
            (self._folder / name).mkdir(parents=True)
        with ExitStack() as stack:
            command = [
                "unshare",
                "--mount",
                "--uts",
                "--propagation",
                "private",
                "sh",
                "-c",
                _HOLD.format(self._folder, self._folder.name),
            ]
            self._holder = subprocess.Popen(command, stdout=subprocess.PIPE)
            stack.callback(end, self._holder, patience=5.0)
            assert self._holder.stdout
            assert self._holder.stdout.readline() == b"ready\n"
            stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        if self._service is not None:
            self.stop()
        end(self._holder, patience=5.0)

    def write(self, path: str, text: str) -> None:
        """Write a file."""
        self._run(f"cat > {path}", given=text)

    def read(self, path: str) -> str:
        """Return a file."""
        return self._run(f"cat {path}").stdout

    def type(self, command: str) -> str:
        """Do what a command says, and return what it prints; a failure raises with that."""
        match command.split():
            case ["systemctl", "enable", "--now", "appliance"] | ["systemctl", "start", "appliance"]:
                self.start()
            case ["systemctl", "stop", "appliance"]:
                self.stop()
            case ["systemctl", "restart", "appliance"]:
                self.stop()
                self.start()
            case ["systemctl", *_]:
                raise AssertionError(f"no test does this: {command}")
            case ["appliance", "upgrade"]:
                return self._upgrade()
            case _:
                done = self._run(command, check=False)
                assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
                return done.stdout
        return ""

    def succeeds(self, command: str) -> bool:
        """Return whether a command ends with 0 now."""
        return self._run(command, check=False).returncode == 0

    def start(self) -> None:
        """Start the appliance, and return when it can be asked to reload."""
        assert self._service is None
        with (self._folder / "log").open("ab") as log:
            self._service = subprocess.Popen(
                [*self._inside(), _COMMANDS / "appliance", "run", "--user", "root"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_until(
            lambda: self._ended() or self.succeeds("test -S /run/appliance/reload.sock"),
            what="the appliance can be asked",
            timeout=_PATIENCE,
            pause=0.2,
        )
        assert not self._ended(), (self._folder / "log").read_text()[-4000:]

    def stop(self) -> None:
        """Stop the appliance in order; it has ended when this returns."""
        assert self._service is not None
        service, self._service = self._service, None
        end(service, patience=_STOP)

    def _upgrade(self) -> str:
        """Upgrade the appliance in place; the new supervisord is the service from then on."""
        done = self._run("appliance upgrade", check=False)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        assert self._service is not None
        assert self._service.wait(_PATIENCE) == 0
        self._service = NotOurChild(int(self.read("/run/appliance/supervisord.pid")))
        return done.stdout

    def _ended(self) -> bool:
        return self._service is None or self._service.poll() is not None

    def _inside(self) -> list[str]:
        return [
            "nsenter",
            f"--mount=/proc/{self._holder.pid}/ns/mnt",
            f"--uts=/proc/{self._holder.pid}/ns/uts",
            f"--net=/run/netns/{self.node.name}",
            "--",
        ]

    def _run(
        self, command: str, *, check: bool = True, given: str | None = None
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*self._inside(), "sh", "-c", f"cd {self._folder}/home && {command}"],
            env={**os.environ, "PATH": f"{_COMMANDS}:{os.environ['PATH']}"},
            input=given,
            capture_output=True,
            text=True,
            check=check,
            timeout=patient(_PATIENCE),
        )
