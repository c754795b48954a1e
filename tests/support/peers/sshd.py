"""A real sshd on a loopback port, with keys of its own, for the user who runs the tests."""

import getpass
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.network.ports import accepts, free_port
from support.processes.processes import end
from support.processes.waiting import wait_until
from support.run import tools

_CONFIG: Final = """
ListenAddress 127.0.0.1
Port {port}
HostKey {root}/host
PidFile none
AuthorizedKeysFile {root}/user.pub
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
PrintMotd no
PrintLastLog no
{settings}
"""
_SEPARATION: Final = Path("/run/sshd")
"""An empty directory that sshd wants as root; Debian's unit makes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sshd:
    """A running sshd; `pid` is its listener's, whose children are the sessions."""

    port: int
    root: Path
    pid: int

    @property
    def options(self) -> dict[str, object]:
        """Options of OpenSSH's client that lead there."""
        return {
            "Port": self.port,
            "IdentityFile": self.root / "user",
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": self.root / "known",
            "StrictHostKeyChecking": "yes",
            "BatchMode": "yes",
            "LogLevel": "ERROR",
        }

    def client(self, remote: str) -> Sequence[str]:
        """Return the command that runs a command line over there, in a terminal."""
        words = [word for key, value in self.options.items() for word in ("-o", f"{key}={value}")]
        return ["ssh", "-F", "none", "-tt", *words, f"{getpass.getuser()}@127.0.0.1", remote]


@contextmanager
def sshd(root: Path, environment: Mapping[str, str] | None = None) -> Iterator[Sshd]:
    """Run one with its keys in a directory; what it starts has these variables, too.

    The directory is HOME there: the user's own .bashrc may print what is no part of a test.
    """
    given = {"HOME": root, **(environment or {})}
    settings = "SetEnv " + " ".join(f'"{name}={value}"' for name, value in given.items())
    for name in ("host", "user"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(root / name)]
        subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    port = free_port()
    kind, key = (root / "host.pub").read_text().split()[:2]
    (root / "known").write_text(f"[127.0.0.1]:{port} {kind} {key}\n")
    (root / "config").write_text(_CONFIG.format(port=port, root=root, settings=settings))
    if tools.is_root():
        _SEPARATION.mkdir(mode=0o755, exist_ok=True)
    with (root / "log").open("wb") as log:
        process = subprocess.Popen(
            [tools.path("sshd") or "sshd", "-D", "-e", "-f", str(root / "config")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=dict(os.environ),
        )
    try:
        wait_until(lambda: accepts(port) or process.poll() is not None, what="sshd listens")
        assert process.poll() is None, (root / "log").read_text()
        yield Sshd(port=port, root=root, pid=process.pid)
    finally:
        end(process)
