"""The sources of a virtual machine's OVF environment: VMware's tool, a systemd credential, an ISO.

They are tried in this order, and the first one with a property of ours is used. An existing but unreadable
one is reported as a problem, and the next one is tried.

vSphere hands the environment over by its tool (guestinfo.ovfEnv) or by an ISO (DSP0243 section 11.2); other
hypervisors, and tests, can use a credential (systemd.system-credentials(7)).
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from appliance.model.guest.properties import known, misspelt
from appliance.model.guest.report import GuestProblem, Origin
from appliance.wire.ovf_environment import LIMIT, OvfEnvironmentError, parse

CREDENTIAL: Final = "lb.ovfenv"
"""Name of the systemd credential."""

LABEL: Final = r"OVF\x20ENV"
"""Label of the ISO (DSP0243 section 11.2), as udev writes it."""

_FILE: Final = "ovf-env.xml"
_TOOL: Final = ("vmware-rpctool", "info-get guestinfo.ovfEnv")
_TIMEOUT: Final = 15.0  # seconds for each command: a tool that hangs must not keep the machine from starting


class SourceError(Exception):
    """A source exists but cannot be read; the message has the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The environment of a source as it was written (`data`), and its properties by their keys as written."""

    origin: Origin
    data: bytes = b""
    written: Mapping[str, str]
    problems: tuple[GuestProblem, ...] = ()


def ask(root: Path, environment: Mapping[str, str], *, timeout: float = _TIMEOUT) -> Found:
    """Return the properties of the first source with any of ours; origin NONE if none has.

    `environment` is this process's, `timeout` the seconds that VMware's tool has to answer.
    """
    problems: list[GuestProblem] = []
    sources: tuple[tuple[Origin, Callable[[], bytes | None]], ...] = (
        (Origin.VMWARE, lambda: _from_tool(timeout)),
        (Origin.CREDENTIAL, lambda: _from_credential(environment)),
        (Origin.ISO, lambda: _from_iso(root)),
    )
    for origin, read in sources:
        try:
            data = read()
            written = parse(data) if data else {}
        except (SourceError, OvfEnvironmentError) as error:
            problems.append(GuestProblem(message=f"the OVF environment ({_SPELT[origin]}) {error}"))
            continue
        if not any(map(known, written)):
            problems += (GuestProblem(message=each) for each in misspelt(written))
        elif data:
            return Found(origin=origin, data=data, written=written, problems=tuple(problems))
    return Found(origin=Origin.NONE, written={}, problems=tuple(problems))


_SPELT: Final = {
    Origin.VMWARE: "guestinfo.ovfEnv",
    Origin.CREDENTIAL: f"credential {CREDENTIAL}",
    Origin.ISO: f"ISO, {_FILE}",
}


def _from_tool(timeout: float) -> bytes | None:
    """Ask VMware's tool; it fails at once if this is not a VMware machine, or has no environment."""
    tool = shutil.which(_TOOL[0])
    if tool is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603  # no shell, and no text of others
            [tool, _TOOL[1]], stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise SourceError(f"is not known: {_TOOL[0]} has not answered for {timeout:g} s") from error
    except OSError as error:
        raise SourceError(f"is not known: {tool}: {error.strerror}") from error
    return done.stdout if done.returncode == 0 and done.stdout.strip() else None


def _from_credential(environment: Mapping[str, str]) -> bytes | None:
    directory = environment.get("CREDENTIALS_DIRECTORY")
    return _bounded(Path(directory) / CREDENTIAL) if directory else None


def _from_iso(root: Path) -> bytes | None:
    device = root / "dev/disk/by-label" / LABEL
    if not device.exists():
        return None
    with _mounted(device) as directory:
        names = [each for each in directory.iterdir() if each.name.lower() == _FILE]
        if not names:
            raise SourceError("is not there")
        return _bounded(names[0])


@contextlib.contextmanager
def _mounted(device: Path) -> Iterator[Path]:
    """Mount a disk in a directory that only root can enter, with nothing on it executable or a device."""
    options = "ro,nosuid,nodev,noexec"
    with tempfile.TemporaryDirectory(prefix="ovf-env-") as directory:
        _run("mount", "-t", "iso9660", "-o", options, str(device), directory)
        try:
            yield Path(directory)
        finally:
            _run("umount", "--lazy", directory)  # it is unmounted even if some process (udev) has it open


def _run(*command: str) -> None:
    try:
        done = subprocess.run(  # noqa: S603  # mount and umount, without a shell
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SourceError(f"cannot be read: {error}") from error
    if done.returncode != 0:
        reason = done.stderr.decode(errors="replace").strip()
        raise SourceError(f"cannot be read: {reason or f'{command[0]} failed'}")


def _bounded(path: Path) -> bytes | None:
    """Return a file's content, None if there is no file.

    Reads at most one byte more than allowed, which is enough for the parser to detect excess.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(LIMIT + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SourceError(f"cannot be read: {error.strerror}") from error
