"""The file with the report on a virtual machine's properties, which `appliance status` reads."""

import contextlib
import os
import pwd
from pathlib import Path
from typing import Final

import msgspec

from appliance.model.guest.report import GuestReport
from appliance.model.paths import Paths
from appliance.net.files import state_files

_USER: Final = "appliance"


def publish(paths: Paths, report: GuestReport) -> None:
    """Write the report; raises OSError.

    Just after a start of the machine, creates the runtime directory, too. This runs as root in a directory
    that belongs to the user of the appliance, so symbolic links there must not be followed: one could make
    root overwrite any file.
    """
    if not paths.runtime.is_dir():
        paths.runtime.mkdir(mode=0o700, parents=True)
        _give_to_user(paths.runtime)
    scratch = paths.guest_report.with_suffix(".new")
    scratch.unlink(missing_ok=True)
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o644)
        file.write(msgspec.json.encode(report))
    state_files.clear_way(paths.guest_report)
    scratch.replace(paths.guest_report)


def read(paths: Paths) -> GuestReport | None:
    """Return the last report, None without a readable one."""
    return state_files.decoded(paths.guest_report, GuestReport)


def _give_to_user(directory: Path) -> None:
    if os.geteuid() == 0:
        with contextlib.suppress(KeyError):  # a machine without that user
            user = pwd.getpwnam(_USER)
            os.chown(directory, user.pw_uid, user.pw_gid)
