"""Whether a directory is private to its owner: no other user can write into it or replace it.

Files in the runtime and state directories are trusted (among them configurations of supervisord), so a user
who can write there can run commands as us. The whole path counts, as for sshd(8)'s StrictModes: a user who
can rename a directory on it, or owns a symbolic link there, can replace the directory.
"""

import errno
import grp
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from appliance.net.privileges.user_names import user_name

_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_MOST_LINKS: Final = 40  # as the kernel follows, path_resolution(7)
_UID_MAP: Final = Path("/proc/self/uid_map")
_OVERFLOW: Final = Path("/proc/sys/kernel/overflowuid")
_ALL: Final = 2**32 - 1


def flaw(path: Path, *, owner: int) -> str | None:
    """Return how a user other than root and `owner` can write there, None if none can.

    A path that does not exist yet is judged by the directory in which it would be created. A volume of a
    container (a mount that root owns and everybody may write to, as Kubernetes makes an emptyDir) is
    accepted: only the containers that have it can reach it. Raises OSError.
    """
    trusted = {0, owner} | _unmapped()
    whole = path.absolute()
    for place, status, last in _way(whole):
        found = _flaw(place, status, trusted, last=last)
        if found and not (last and _is_volume(place, status)):
            return found if place == whole else f"{found}, on the way to {whole}"
    return None


def _flaw(place: Path, status: os.stat_result, trusted: set[int], *, last: bool) -> str | None:
    if status.st_uid not in trusted:
        return f"{place} belongs to user {user_name(status.st_uid) or status.st_uid}"
    if stat.S_ISLNK(status.st_mode) or not status.st_mode & _OTHERS:
        return None
    # A sticky directory (/tmp) protects its entries from others, but others can add entries.
    if not last and (status.st_mode & stat.S_ISVTX or _harmless_group(status)):
        return None
    return f"{place} is writable by others (mode {stat.S_IMODE(status.st_mode):04o})"


def _way(path: Path) -> Iterator[tuple[Path, os.stat_result, bool]]:
    """Yield every directory and symbolic link from the root to the end of the path; True with the end.

    Links are followed here rather than by the kernel, as a link's owner could point it elsewhere.
    """
    pending, reached, links = list(reversed(path.parts[1:])), Path("/"), 0
    yield reached, reached.lstat(), not pending
    while pending:
        step = reached / pending.pop()
        try:
            status = step.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
            yield step, status, False
            target = step.readlink()
            reached = Path("/") if target.is_absolute() else reached
            pending += reversed([part for part in target.parts if part != "/"])
            continue
        reached = reached.parent if step.name == ".." else step
        yield reached, reached.lstat(), not pending


def _harmless_group(status: os.stat_result) -> bool:
    """Return whether only a group may write that is root's or has only the owner (user groups)."""
    if status.st_mode & stat.S_IWOTH:
        return False
    if status.st_gid == 0:
        return True
    try:
        group, name = grp.getgrgid(status.st_gid), pwd.getpwuid(status.st_uid).pw_name
    except KeyError:
        return False
    return group.gr_name == name and set(group.gr_mem) <= {name}


def _is_volume(place: Path, status: os.stat_result) -> bool:
    return status.st_uid == 0 and not status.st_mode & stat.S_ISVTX and place.is_mount()


def _unmapped() -> set[int]:
    """Return the number of users outside of our user namespace, overflowuid (user_namespaces(7))."""
    try:
        ranges = [[int(word) for word in line.split()] for line in _UID_MAP.read_text().splitlines()]
        overflow = int(_OVERFLOW.read_text())
    except (OSError, ValueError):
        return set()
    whole = any(first == 0 and length == _ALL for first, _, length in ranges)
    return set() if whole else {overflow}
