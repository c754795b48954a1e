"""The report on a virtual machine's properties, where `appliance status` finds it."""

import contextlib
import os
import pwd
from pathlib import Path
from typing import Final

import msgspec

from appliance.model.guest_report import GuestReport
from appliance.model.paths import Paths
from appliance.net.files.snapshots import write_atomically

_USER: Final = "appliance"


def publish(paths: Paths, report: GuestReport) -> None:
    """Write the report, with the runtime directory where the machine has just started; raises OSError."""
    if not paths.runtime.is_dir():
        paths.runtime.mkdir(mode=0o700, parents=True)
        _give(paths.runtime)
    write_atomically(paths.guest_report, msgspec.json.encode(report))
    paths.guest_report.chmod(0o644)


def read(paths: Paths) -> GuestReport | None:
    """Return the report of the last time, None where there is none."""
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(paths.guest_report.read_bytes(), type=GuestReport)
    return None


def _give(directory: Path) -> None:
    if os.geteuid() == 0:
        with contextlib.suppress(KeyError):  # not there: a machine without the appliance's user
            user = pwd.getpwnam(_USER)
            os.chown(directory, user.pw_uid, user.pw_gid)
