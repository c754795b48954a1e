"""Becoming an ordinary user after a start as root, with the capabilities that the programs use.

Podman and systemd start an ordinary user with capabilities; Docker and Kubernetes can give them only to root.
There the image's APPLIANCE_USER names the user to become: then every command of a container runs as this
user, however started, and finds the files of the others. On a machine `appliance run` becomes `appliance`, if
that user exists; without it root stays root, but only as an owner of files.
"""

import contextlib
import os
import pwd
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from appliance.net.privileges import capabilities, private_directory
from appliance.net.process.prctl import ProcessOption, prctl

USER_VARIABLE: Final = "APPLIANCE_USER"
USER: Final = "appliance"
ROOT: Final = "root"

_MARKS: Final = frozenset(
    {"appliance.lock", "accepted.json", "last-good.json", "operator-states.json", "operator-weights.json"}
)
_NOBODY_S: Final = frozenset({"lost+found"})  # of a file system that is a volume


class CannotBecomeError(Exception):
    """The user does not exist, or we may not become it."""


def standard_user() -> str:
    """Return the user that root becomes by default: `appliance` if it exists, else root itself."""
    with contextlib.suppress(KeyError):
        return pwd.getpwnam(USER).pw_name
    return ROOT


def become(
    name: str,
    *,
    owned: Iterable[Path],
    before: Callable[[int], None] = lambda _: None,
    joined: Callable[[int], Iterable[int]] = lambda _: (),
) -> None:
    """Become this user permanently, after giving it the directories `owned`; does nothing unless root.

    If the user is root itself, the capabilities that no program needs are dropped. `before` is called with
    the user's number while we are still root, and so is `joined`, which returns groups to join in addition to
    the user's own. Raises CannotBecomeError.
    """
    if os.geteuid() != 0:
        return
    user = _user(name)
    if user.pw_uid == 0:
        before(0)
        _join(os.getgroups(), joined(0))
        _renounce()
        return
    for path in owned:
        with contextlib.suppress(OSError):  # its user reports that it is not writable
            _give(path, user)
    before(user.pw_uid)
    further = [*joined(user.pw_uid)]
    capabilities.bound()
    # Without this the kernel empties the permitted set when all user numbers stop being 0 (capabilities(7)).
    prctl(ProcessOption.SET_KEEPCAPS, 1)
    try:
        os.setgroups(sorted({*os.getgrouplist(name, user.pw_gid), *further}))
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
    except PermissionError as error:
        raise CannotBecomeError(
            f"started as root without the right to become user {name}: "
            f"add the capabilities SETUID and SETGID, or start as that user (--user {name})"
        ) from error
    capabilities.grant(capabilities.EVERYTHING)
    os.environ.update(HOME=user.pw_dir, USER=name, LOGNAME=name)


def gain_nothing() -> None:
    """Let no exec of ours, or of our descendants, add privileges: set-uid programs, file capabilities.

    This is permanent and inherited (PR_SET_NO_NEW_PRIVS of prctl(2)).
    """
    prctl(ProcessOption.SET_NO_NEW_PRIVS, 1)


def settle() -> None:
    """Be in the state in which an exec leaves a process that has become another user."""
    prctl(ProcessOption.SET_KEEPCAPS, 0)
    prctl(ProcessOption.SET_DUMPABLE, 1)
    capabilities.keep_ambient()


def _join(groups: Iterable[int], further: Iterable[int]) -> None:
    wanted = {*groups, *further}
    if wanted != {*groups}:
        with contextlib.suppress(PermissionError):  # a container without CAP_SETGID
            os.setgroups(sorted(wanted))


def _renounce() -> None:
    with contextlib.suppress(PermissionError):  # a container without CAP_SETPCAP has little to drop
        capabilities.renounce()


def _user(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except KeyError as error:
        raise CannotBecomeError(f"no user {name!r}, whom `--user` or {USER_VARIABLE} names") from error


def _give(path: Path, user: pwd.struct_passwd) -> None:
    """Give the user a directory that is new or an appliance's, with root's files in it."""
    if private_directory.flaw(path, owner=user.pw_uid):
        return  # other users can write there: it will be refused, and root must not change its owner
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.stat().st_uid != 0 or not _ours(path):
        return
    for place in (*_below(path), path):
        os.chown(place, user.pw_uid, user.pw_gid, follow_symlinks=False)
    path.chmod(0o700)


def _ours(path: Path) -> bool:
    """Return whether it is empty or an appliance's: a mistyped path could be /etc."""
    names = {each.name for each in path.iterdir()} - _NOBODY_S
    return not names or bool(names & _MARKS)


def _below(path: Path) -> Iterator[Path]:
    """Yield root's files there, except those with a second name (hard link): that may be anywhere."""
    for each in path.rglob("*"):
        status = each.lstat()
        if status.st_uid == 0 and (stat.S_ISDIR(status.st_mode) or status.st_nlink == 1):
            yield each
