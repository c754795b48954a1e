"""The group of readers (`group:`), recorded as mode and group of the runtime directory.

The directory is set-group-id, so files created in it belong to that group without any privilege (inode(7)).
Each program sets the modes of its files there.
"""

import grp
import os
import pwd
import stat
from pathlib import Path
from typing import Final

from appliance.net.privileges.user_names import user_name

_LET_IN: Final = 0o2750
_ALONE: Final = 0o700


class ReadersRefused(Exception):  # noqa: N818  # a state of the machine, not a mistake of ours
    """The group cannot get access; has the reason."""


def are_let_in(directory: Path) -> bool:
    """Return whether a group may read here. Other modes with set-group-id are those of volumes, not ours."""
    try:
        return stat.S_IMODE(directory.stat().st_mode) == _LET_IN
    except OSError:
        return False


def socket_mode(directory: Path) -> int:
    """Return the mode of a control socket: connect(2) needs permission to write (unix(7))."""
    return 0o660 if are_let_in(directory) else 0o600


def file_mode(directory: Path) -> int:
    """Return the mode of a board or a file that a status is read from."""
    return 0o640 if are_let_in(directory) else 0o600


def group_of(directory: Path) -> str | None:
    """Return the name of the group that may read here, None without one."""
    if not are_let_in(directory):
        return None
    number = directory.stat().st_gid
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def objection(name: str) -> str | None:
    """Return why our user may not give access to this group, None if it may."""
    try:
        number = _number(name)
    except ReadersRefused as error:
        return str(error)
    if os.geteuid() == 0 or number in _own_groups():
        return None
    own = user_name(os.geteuid()) or os.geteuid()
    return f"user {own}, who runs the programs, is no member of the group `{name}`"


def let_in(directory: Path, name: str, *, owner: int) -> None:
    """Let a group read in a directory of the user `owner`; raises ReadersRefused."""
    number = _number(name)
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise ReadersRefused(f"{directory}: {error.strerror}") from error
    try:
        _give(descriptor, number, owner)
    except OSError as error:
        raise ReadersRefused(objection(name) or f"{directory}: {error.strerror}") from error
    finally:
        os.close(descriptor)


def keep_out(directory: Path) -> None:
    """Revoke any group's access; raises OSError."""
    if are_let_in(directory):
        directory.chmod(_ALONE)


def _give(descriptor: int, group: int, owner: int) -> None:
    found = os.fstat(descriptor)
    if found.st_uid != owner:
        raise ReadersRefused("the runtime directory belongs to another user")
    if (found.st_gid, stat.S_IMODE(found.st_mode)) == (group, _LET_IN):
        return
    os.fchmod(descriptor, _ALONE)
    os.fchown(descriptor, -1, group)
    os.fchmod(descriptor, _LET_IN)
    # chmod(2) silently clears set-group-id if the caller is not a member of the group.
    if not os.fstat(descriptor).st_mode & stat.S_ISGID:
        os.fchmod(descriptor, _ALONE)
        raise ReadersRefused("the kernel forbids this user to set the group of a directory")


def _number(name: str) -> int:
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise ReadersRefused(f"there is no group `{name}` on this machine") from None


def _own_groups() -> set[int]:
    """Return our groups and those of our user's next start: it may have been added to some since."""
    ours = {os.getegid(), *os.getgroups()}
    try:
        entry = pwd.getpwuid(os.geteuid())
    except KeyError:
        return ours
    return ours | set(os.getgrouplist(entry.pw_name, entry.pw_gid))
