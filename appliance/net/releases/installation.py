"""A release installed from its archive into a folder of its own: whole, or nothing of it is there.

It gets a virtual environment of the Python that runs this, without a package registry. Every part is compared
with the hash that the archive has for it, and the command has to say the version of the archive's name.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from appliance.net.releases.archive import ArchiveRefused, compare, open_archive, unpack
from appliance.net.releases.release_folders import PREFIX, ReleaseFolders

_PATIENCE: Final = 300.0  # seconds for each command
_ROOM: Final = 12  # times the archive's size: its parts, what they unpack to, and pip's own copies
_READABLE: Final = 0o022  # umask: the programs' user reads it
_ENVIRONMENT: Final = {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}


class InstallationFailed(Exception):  # noqa: N818  # what has happened, not a mistake of ours
    """The release is not installed, and nothing of it is left."""


def install(path: Path, folders: ReleaseFolders, *, checksum: str | None) -> str:
    """Install the release of an archive and return its name; raises InstallationFailed.

    One that runs, or is the way back, is left as it is.
    """
    try:
        with open_archive(path) as file, tempfile.TemporaryDirectory(dir=folders.place) as scratch:
            if checksum is not None:
                compare(file, checksum)
            _look_for_room(path, folders)
            parts = Path(scratch)
            name = unpack(file, parts)
            if name in (folders.current, folders.former):
                raise InstallationFailed(f"{name} is installed already")
            _install(parts, folders, name)
            return name
    except ArchiveRefused as error:
        raise InstallationFailed(f"{path}: {error}") from error
    except OSError as error:
        raise InstallationFailed(f"{error.filename or path}: {error.strerror or error}") from error


def remove(folders: ReleaseFolders, name: str) -> None:
    """Remove a release that nobody wants to start."""
    shutil.rmtree(folders.place / name, ignore_errors=True)


def _look_for_room(path: Path, folders: ReleaseFolders) -> None:
    wanted, free = _ROOM * path.stat().st_size, shutil.disk_usage(folders.place).free
    if free < wanted:
        raise InstallationFailed(
            f"{folders.place} has {free >> 20} MB left, and {wanted >> 20} MB are needed"
        )


def _install(parts: Path, folders: ReleaseFolders, name: str) -> None:
    target = folders.place / name
    python = str(target / "bin" / "python")
    pip = ("-I", "-m", "pip", "--isolated", "--disable-pip-version-check", "install", "--quiet")
    try:
        _run([str(Path(sys.executable).resolve()), "-I", "-m", "venv", "--clear", str(target)])
        _run(
            [
                *(python, *pip, "--no-index", "--no-cache-dir", "--find-links", str(parts)),
                *("--require-hashes", "--requirement", str(parts / "requirements.txt")),
            ]
        )
        _compare_version(name, _run([str(folders.command(name)), "--version"]))
    except BaseException:
        remove(folders, name)
        raise


def _compare_version(name: str, said: str) -> None:
    if said.split()[-1:] != [name.removeprefix(PREFIX)]:
        raise InstallationFailed(f"{name} says that it is: {said.strip()}")


def _run(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(  # noqa: S603  # by argument list
            list(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_PATIENCE,
            umask=_READABLE,
            env=_ENVIRONMENT,
        )
    except subprocess.TimeoutExpired as error:
        raise InstallationFailed(f"{command[0]}: not done after {_PATIENCE:g} s") from error
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines()
        raise InstallationFailed("; ".join(words[-3:]) or f"{command[0]} ended with {done.returncode}")
    return done.stdout
