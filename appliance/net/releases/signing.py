"""Which key signed the archive of a release: ssh-keygen compares it with those of this installed release.

OpenSSH is on every machine that is administered by ssh, and a key may be in its agent or on a token: no
cryptography is ours, and whoever downloads a release verifies it by the same command.
"""

import os
import subprocess
from pathlib import Path
from typing import IO, Final

from appliance.net.files.packaged import packaged
from appliance.wire import release_signature
from appliance.wire.release_signature import NAMESPACE, ReleaseSignature, SignatureError

SUFFIX: Final = ".sig"
"""What the file of a signature is named after the file that is signed."""

SIGNER: Final = "lb-appliance"
"""The signer, in the file of allowed signers."""

_PATIENCE: Final = 60.0  # seconds; an archive takes less than one
_ENVIRONMENT: Final = {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
_AGAIN: Final = "download the archive and its signature again"


class SignatureRefused(Exception):  # noqa: N818  # what was found, not a mistake of ours
    """The archive is not signed by a key of this release; `step` is what to do."""

    def __init__(self, message: str, *, step: str) -> None:
        super().__init__(message)
        self.step = step


def signature_beside(path: Path) -> bytes | None:
    """Return the content of `path`.sig, None without that file; raises SignatureRefused."""
    beside = path.with_name(path.name + SUFFIX)
    try:
        descriptor = os.open(beside, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(release_signature.MOST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SignatureRefused(f"{beside}: {error.strerror}", step="see that it can be read") from error


def verify(archive: IO[bytes], signature: bytes | None, *, signers: Path | None = None) -> ReleaseSignature:
    """Verify an open file by our `signers`, return the signature; rewinds it. Raises SignatureRefused."""
    signers = signers or packaged("release-signers")
    keys = _keys(signers)
    if signature is None:
        raise SignatureRefused(
            f"it is not signed: there is no file with its name and {SUFFIX}",
            step=f"put the {SUFFIX} of the release beside it (on standard input: before it)",
        )
    try:
        found = release_signature.decode(signature)
    except SignatureError as error:
        raise SignatureRefused(f"its signature is damaged, or none: {error}", step=_AGAIN) from error
    if not keys:
        raise SignatureRefused(
            "the installed release has no key to compare a signature with: it was made without one",
            step=f"compare it by hand: ssh-keygen -Y verify, of {found.fingerprint}",
        )
    if found.public_key not in keys:
        raise SignatureRefused(
            f"it is signed by a key that the installed release does not know: {found.fingerprint}",
            step="check its origin, and whether the key was changed: the release notes announce that",
        )
    if found.namespace != NAMESPACE:
        raise SignatureRefused(
            f"its signature is one for {found.namespace!r}, not for {NAMESPACE!r}", step=_AGAIN
        )
    if not _is_good(archive, signature, signers):
        raise SignatureRefused(
            "its signature is of other content (damaged, or changed), or the key's time is over",
            step=_AGAIN,
        )
    return found


def _keys(signers: Path) -> frozenset[str]:
    """Return the words of the file, which its keys are among."""
    try:
        lines = signers.read_text().splitlines()
    except OSError as error:
        raise SignatureRefused(
            f"{signers}: {error.strerror}", step="install this release again: a part of it is missing"
        ) from error
    return frozenset(word for line in lines if not line.lstrip().startswith("#") for word in line.split())


def _is_good(archive: IO[bytes], signature: bytes, signers: Path) -> bool:
    with os.fdopen(os.memfd_create("signature", os.MFD_CLOEXEC), "w+b", buffering=0) as beside:
        beside.write(signature)
        command = [
            *("ssh-keygen", "-Y", "verify", "-f", str(signers), "-I", SIGNER, "-n", NAMESPACE),
            *("-s", f"/proc/self/fd/{beside.fileno()}"),
        ]
        archive.seek(0)
        try:
            done = subprocess.run(  # noqa: S603  # by argument list
                command,
                stdin=archive,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(beside.fileno(),),
                env=_ENVIRONMENT,
                check=False,
                timeout=_PATIENCE,
            )
        except FileNotFoundError as error:
            raise SignatureRefused(
                "its signature cannot be compared: there is no ssh-keygen here",
                step="install OpenSSH's programs (Debian: openssh-client; Fedora and RHEL: openssh)",
            ) from error
        except subprocess.TimeoutExpired as error:
            raise SignatureRefused(
                f"its signature cannot be compared: ssh-keygen did not end within {_PATIENCE:g} s",
                step="try again when the machine is less busy",
            ) from error
    archive.seek(0)
    return done.returncode == 0
