"""The SSH host keys of a virtual machine, as ssh shows them at the first login for comparison."""

import base64
import binascii
import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SSH: Final = Path("/etc/ssh")
_LONGEST: Final = 16384


@dataclass(frozen=True, slots=True, kw_only=True)
class HostKey:
    """A key by its kind (ED25519, ECDSA) and its fingerprint (`SHA256:...`)."""

    kind: str
    fingerprint: str


def host_keys(folder: Path) -> tuple[HostKey, ...]:
    """Return the public host keys in a folder, in the order of their files; ignores other files."""
    return tuple(key for file in sorted(folder.glob("ssh_host_*_key.pub")) for key in _read(file))


def _read(file: Path) -> Iterator[HostKey]:
    """Yield the key of a file in sshd(8)'s format: kind, base64, comment."""
    with contextlib.suppress(OSError, binascii.Error, ValueError):
        with file.open("rb") as opened:
            kind, blob = opened.read(_LONGEST).decode("ascii").split()[:2]
        digest = hashlib.sha256(base64.b64decode(blob, validate=True)).digest()
        yield HostKey(
            kind=_named(kind), fingerprint=f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"
        )


def _named(kind: str) -> str:
    """Return what ssh calls a kind of key: ssh-ed25519 is ED25519, ecdsa-sha2-nistp256 is ECDSA."""
    return "ECDSA" if kind.startswith("ecdsa-") else kind.removeprefix("ssh-").upper()
