"""A release installed from its archive into its own folder, completely or not at all.

It gets a virtual environment of the running Python, without a package registry. Every part is compared with
its hash in the archive, and the command must print the version in the archive's name.
"""

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Final

from appliance.net.releases.archive import ArchiveRefused, compare, naming, private_copy, unpack
from appliance.net.releases.release_folders import PREFIX, ReleaseFolders

_PATIENCE: Final = 300.0  # seconds for each command
_ROOM: Final = 12  # multiple of the archive's size: its parts, their unpacked files, and pip's own copies
_BARE: Final = 32 << 20  # bytes of a virtual environment with pip, and nothing else
_FILES: Final = 10_000  # of a release, with pip's, and some to spare
_SCRATCH: Final = f"{PREFIX}unpacked-"  # one left by a power cut is removed with the next release
_SAMPLE: Final = 1 << 20  # bytes that a full disk lacks
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
_READABLE: Final = 0o022  # umask: the programs' user reads it
_ENVIRONMENT: Final = {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}


class InstallationFailed(Exception):  # noqa: N818  # what has happened, not a mistake of ours
    """The release is not installed, and nothing of it remains; `step` is what to do."""

    def __init__(self, message: str, *, step: str = "copy or make the archive again") -> None:
        super().__init__(message)
        self.step = step


def install(
    path: Path, folders: ReleaseFolders, *, checksum: str | None, verify: Callable[[IO[bytes]], object]
) -> str:
    """Install the release of an archive and return its name; raises InstallationFailed.

    `verify` gets the content before anything of it is used, and raises what it likes. The current and the
    former release are left as they are. So is any other that runs: the command that made it take over was
    killed before choosing it.
    """
    try:
        with private_copy(path) as file:
            if checksum is not None:
                compare(file, checksum)
            verify(file)
            _look_for_room(path, folders)
            with tempfile.TemporaryDirectory(dir=folders.place, prefix=_SCRATCH) as scratch:
                return _installed(unpack(file, Path(scratch)), Path(scratch), folders)
    except ArchiveRefused as error:
        raise InstallationFailed(f"{path}: {error}") from error
    except OSError as error:
        words = f"{error.filename or path}: {error.strerror or error}"
        if error.errno in _NO_ROOM:
            raise InstallationFailed(words, step=_more_room(folders)) from error
        raise InstallationFailed(words) from error


def _installed(name: str, parts: Path, folders: ReleaseFolders) -> str:
    _compare_kind(parts)
    if name == folders.current:
        raise InstallationFailed(f"{name} is installed already", step="none: it is what starts")
    if name == folders.former:
        raise InstallationFailed(f"{name} is installed already", step="appliance upgrade --back")
    if folders.runs(name):
        raise InstallationFailed(
            f"{name} runs already, but is not what starts next", step=folders.by_hand(name)
        )
    _install(parts, folders, name)
    return name


def _compare_kind(parts: Path) -> None:
    """Raise InstallationFailed if our wheel is one for another Python or processor."""
    here = (f"cp{sys.version_info.major}{sys.version_info.minor}", os.uname().machine)
    for wheel in parts.glob("lb_appliance-*.whl"):
        *_, python, abi, platform = wheel.stem.split("-")
        if abi != "none" and (python != here[0] or not platform.endswith(here[1])):
            raise InstallationFailed(
                f"it is for {python} and {platform}, and this machine has {' and '.join(here)}",
                step=f"take the archive of this release with {'-'.join(here)} in its name",
            )


def remove(folders: ReleaseFolders, name: str) -> None:
    """Remove a release that will not be started."""
    shutil.rmtree(folders.place / name, ignore_errors=True)


def _look_for_room(path: Path, folders: ReleaseFolders) -> None:
    wanted, free = _BARE + _ROOM * path.stat().st_size, shutil.disk_usage(folders.place).free
    if free < wanted:
        raise InstallationFailed(
            f"{folders.place} has {free >> 20} MB left, and {wanted >> 20} MB are needed",
            step=_more_room(folders),
        )
    files = os.statvfs(folders.place)
    if files.f_files and files.f_favail < _FILES:  # some file systems have no limit, and report 0
        raise InstallationFailed(
            f"{folders.place} has room for {files.f_favail} more files, and {_FILES} are needed",
            step=_more_room(folders),
        )


def _more_room(folders: ReleaseFolders) -> str:
    return f"make room in {folders.place} (df -h {folders.place}; df -i {folders.place}), and try again"


def _look_for_full_disk(folder: Path) -> None:
    """Raise OSError if a disk is full: a command that failed for that may not report it, as venv does not."""
    with naming(folder), tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(_SAMPLE))
        file.flush()


def _install(parts: Path, folders: ReleaseFolders, name: str) -> None:
    target = folders.place / name
    python = str(target / "bin" / "python")
    pip = ("-I", "-m", "pip", "--isolated", "--disable-pip-version-check", "install", "--quiet")
    try:
        _run([str(Path(sys.executable).resolve()), "-I", "-m", "venv", "--clear", str(target)], parts)
        _run(
            [
                *(python, *pip, "--no-index", "--no-cache-dir", "--find-links", str(parts)),
                *("--require-hashes", "--requirement", str(parts / "requirements.txt")),
            ],
            parts,
        )
        _compare_version(name, _run([str(folders.command(name)), "--version"], parts))
        folders.prepare(name)
    except BaseException:
        folders.withdraw()
        remove(folders, name)
        raise


def _compare_version(name: str, said: str) -> None:
    if said.split()[-1:] != [name.removeprefix(PREFIX)]:
        raise InstallationFailed(f"{name} contains another release: {said.strip()}")


def _run(command: Sequence[str], parts: Path) -> str:
    """Run a command with temporary files next to the parts: that room was checked, and is freed."""
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
            env={**_ENVIRONMENT, "TMPDIR": str(parts)},
        )
    except subprocess.TimeoutExpired as error:
        raise InstallationFailed(f"{command[0]}: not done after {_PATIENCE:g} s") from error
    if done.returncode:
        _look_for_full_disk(parts.parent)
        words = (done.stderr or done.stdout).strip().splitlines()
        raise InstallationFailed("; ".join(words[-3:]) or f"{command[0]} ended with {done.returncode}")
    return done.stdout
