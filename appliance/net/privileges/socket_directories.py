"""Other users' directories for our sockets, such as /run/haproxy of the user `haproxy`.

Root can write everywhere until it drops its privileges. So before that it joins the group of such a directory
if the group may write; if it may not, the error names the directory's owner.
"""

import grp
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from appliance.net.privileges import private_directory
from appliance.net.privileges.user_names import user_name

_WRITES: Final = os.W_OK | os.X_OK
_GROUP_WRITES: Final = stat.S_IWGRP | stat.S_IXGRP


def groups_to_join(sockets: Iterable[Path], user: int) -> frozenset[int]:
    """Return the groups that would let a user create these sockets, unless it is the owner; as root.

    Never root's group, nor that of a directory that another user could have put there: it might be any.
    """
    return frozenset(_groups(sockets, user))


def objection(directory: Path) -> str | None:
    """Return why we may not write into a directory and the remedy, None if that is not the problem."""
    try:
        found = directory.stat()
    except OSError:
        return None
    if os.access(directory, _WRITES, effective_ids=True):
        return None
    owner, ours = user_name(found.st_uid) or found.st_uid, user_name(os.geteuid()) or os.geteuid()
    whose = f"user {owner} and group {_group_name(found.st_gid)}, mode {stat.S_IMODE(found.st_mode):04o}"
    rights = " without root's privileges" if os.geteuid() == 0 else ""
    ways = f"{_let_in(directory, found, ours)}, or name a path in a directory of its own"
    return f"{directory} belongs to {whose}, and we run as user {ours}{rights}: {ways}"


def _let_in(directory: Path, found: os.stat_result, user: str | int) -> str:
    if _is_opened(found) and found.st_gid:
        group = _group_name(found.st_gid)
        return f"make it a member of that group (`usermod --append --groups {group} {user}`) and start again"
    return f"let it write there (`setfacl --modify u:{user}:rwx {directory}`)"


def _groups(sockets: Iterable[Path], user: int) -> Iterator[int]:
    for directory in {each.parent for each in sockets}:
        try:
            found = directory.lstat()
            if private_directory.flaw(directory.parent, owner=0):
                continue
        except OSError:  # it is not there yet
            continue
        if stat.S_ISDIR(found.st_mode) and _is_opened(found) and found.st_uid != user and found.st_gid:
            yield found.st_gid


def _is_opened(found: os.stat_result) -> bool:
    """Return whether the group of a directory may create files there."""
    return found.st_mode & _GROUP_WRITES == _GROUP_WRITES


def _group_name(number: int) -> str | int:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return number
