"""Becoming an ordinary user where one was started as root, with the capabilities that the programs use.

Podman and systemd start an ordinary user with capabilities; Docker and Kubernetes can give them to root only.
There the image's APPLIANCE_USER says who to become: then every command of a container acts as this user,
however it was started, and finds what the others have made.
"""

import contextlib
import ctypes
import os
import pwd
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from appliance.net.process import capabilities

USER_VARIABLE: Final = "APPLIANCE_USER"

_PR_SET_KEEPCAPS: Final = 8  # linux/prctl.h


class CannotBecomeError(Exception):
    """There is no such user, or no right to become it."""


def become(name: str, *, owned: Iterable[Path]) -> None:
    """Become this user for good, and let it own these directories; without being root do nothing.

    Raises CannotBecomeError.
    """
    if os.geteuid() != 0:
        return
    try:
        user = pwd.getpwnam(name)
    except KeyError as error:
        raise CannotBecomeError(f"{USER_VARIABLE}: no user {name!r}") from error
    for path in owned:
        _give(path, user)
    ctypes.CDLL(None).prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0)
    try:
        os.setgroups(os.getgrouplist(name, user.pw_gid))
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
    except PermissionError as error:
        raise CannotBecomeError(
            f"started as root without the right to become user {name}: "
            f"add the capabilities SETUID and SETGID, or start as that user (--user {name})"
        ) from error
    capabilities.hand_over(capabilities.EVERYTHING)


def _give(path: Path, user: pwd.struct_passwd) -> None:
    with contextlib.suppress(OSError):  # whoever needs it says that it is not writable
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.stat().st_uid != user.pw_uid:
            os.chown(path, user.pw_uid, user.pw_gid)
