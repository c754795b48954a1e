"""OpenSSH between the machines of a typed pair: root of each reaches `lb-0` and `lb-1` by these names."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from support.machines.typed_pair import TypedPair

_COMMANDS: Final = Path(sys.executable).parent
_HOSTS: Final = "127.0.0.1 localhost\n10.0.0.2 lb-0\n10.0.0.3 lb-1\n"
_CLIENT: Final = """
Host lb-0 lb-1
  User root
  IdentityFile {root}/user
  IdentitiesOnly yes
  UserKnownHostsFile {root}/known
  StrictHostKeyChecking yes
"""
_SERVER: Final = """
HostKey {root}/host
PidFile none
AuthorizedKeysFile {root}/user.pub
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
SetEnv "PATH={path}"
"""


def ssh_between(pair: TypedPair, root: Path) -> None:
    """Have a sshd on each of the pair, with keys in a directory; they end with their machines."""
    for name in ("host", "user"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(root / name)]
        subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    (root / "known").write_text(f"lb-0,lb-1,10.0.0.2,10.0.0.3 {(root / 'host.pub').read_text()}")
    settings = _SERVER.format(root=root, path=f"{_COMMANDS}:{os.environ['PATH']}")
    for name, machine in pair.machines.items():
        machine.write("/etc/hosts", _HOSTS)
        machine.write("/etc/ssh/ssh_config", _CLIENT.format(root=root))
        if name != "client":
            machine.write("/etc/ssh/sshd_config", settings)
            machine.type("mkdir -p /run/sshd && /usr/sbin/sshd -f /etc/ssh/sshd_config")
