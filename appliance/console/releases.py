"""Releases below /opt: `appliance upgrade FILE` and `--back` install, select and remove them here."""

import contextlib
import os
from enum import Enum
from pathlib import Path
from typing import IO, Final

import click

from appliance.console.output.refusal import Refused
from appliance.net.releases import archive, installation, signing
from appliance.net.releases.archive import ArchiveRefused
from appliance.net.releases.installation import InstallationFailed
from appliance.net.releases.release_folders import ReleaseFolders
from appliance.net.releases.signing import SignatureRefused
from appliance.wire.release_signature import ReleaseSignature

_NOTHING: Final = "nothing was changed, and the running release continues"
_UNSIGNED: Final = "--unsigned accepts it without a signature, so its origin is unknown"
_ROOT: Final = "sudo appliance upgrade ..."


class Trust(Enum):
    """Which archives are installed."""

    SIGNED = "signed"
    ANY = "any"


def installed(file: Path, folders: ReleaseFolders, *, checksum: str | None, trust: Trust) -> str:
    """Install the release of an archive and return its name; raises Refused.

    `checksum` is the operator's; without it that of the file next to the archive counts, if there is one.
    """
    _look_for_folders(folders)
    proof = _Proof(file, trust)
    try:
        given = archive.checksum(checksum, where="--sha256") if checksum else archive.expected_checksum(file)
        name = installation.install(file, folders, checksum=given, verify=proof)
    except ArchiveRefused as error:
        raise Refused(str(error), step=f"copy or make the archive again; {_NOTHING}") from error
    except InstallationFailed as error:
        raise Refused(str(error), step=f"{error.step}; {_NOTHING}") from error
    except OSError as error:
        raise Refused(f"{error.filename}: {error.strerror}", step=_NOTHING) from error
    with contextlib.suppress(BrokenPipeError):  # whose connection is lost has the upgrade done nevertheless
        click.echo(
            f"Installed {folders.place / name}: {proof.words}, and each part is as the archive lists it."
        )
    return name


class _Proof:
    """Verifies an archive as far as the operator wants; `words` is what has been found."""

    def __init__(self, file: Path, trust: Trust) -> None:
        self._file, self._trust = file, trust
        self.words = "its signature was not verified"

    def __call__(self, archive: IO[bytes]) -> None:
        if self._trust is Trust.SIGNED:
            self.words = f"signed with {verified(self._file, archive).fingerprint}"


def verified(file: Path, archive: IO[bytes]) -> ReleaseSignature:
    """Compare an open archive with the signature beside its file; raises Refused."""
    try:
        return signing.verify(archive, signing.signature_beside(file))
    except SignatureRefused as error:
        raise Refused(f"{file}: {error}", step=f"{error.step}; {_UNSIGNED}; {_NOTHING}") from error


def way_back(folders: ReleaseFolders) -> str:
    """Return the name of the release that ran before; raises Refused."""
    _look_for_folders(folders)
    if former := folders.former:
        _prepare(former, folders)
        return former
    raise Refused(
        f"{folders.place}: no former release is kept", step="appliance upgrade FILE, with its archive"
    )


def _prepare(name: str, folders: ReleaseFolders) -> None:
    try:
        folders.prepare(name)
    except OSError as error:
        folders.withdraw()
        raise Refused(
            f"{error.filename}: {error.strerror}", step=f"see that {folders.place} can be written; {_NOTHING}"
        ) from error


def choose(name: str, folders: ReleaseFolders) -> None:
    """Make a release start from now on, and remove all others except the one to return to."""
    try:
        folders.choose(name)
        removed = folders.remove_others()
    except OSError as error:
        raise Refused(
            f"{error.filename}: {error.strerror}",
            step=f"{name} may not start after a reboot: {folders.by_hand(name)}",
        ) from error
    kept = f"; {folders.former} is kept for --back" if folders.former else ""
    click.echo(f"{name} starts from now on{kept}.")
    if removed:
        click.echo(f"Removed: {', '.join(removed)}.")


def _look_for_folders(folders: ReleaseFolders) -> None:
    if os.geteuid() != 0:
        raise Refused("needs root: it installs below /opt", step=_ROOT)
    if folders.current is None:
        raise Refused(
            f"{folders.place}/appliance is no link to a release: it is installed in another way here",
            step="upgrade it the way it was installed, then: appliance upgrade",
        )
