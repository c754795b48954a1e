"""The users of commands, with all their groups: looked up in a thread, as LDAP may be slow."""

import os
import pwd
from dataclasses import dataclass

import gevent

from appliance.net.loop import thread_pool


class UnknownUserError(Exception):
    """The user does not exist, or the look-up takes too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A user: its numbers, all its groups, and its home for the environment of its commands."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str


def account(user: str | None, *, timeout: float) -> Account:
    """Return a user, our own for None, within `timeout` seconds; raises UnknownUserError, OSError."""
    asking = thread_pool.begin(_look_up, user)
    try:
        found: Account | UnknownUserError = asking.get(timeout=timeout)
    except gevent.Timeout as error:
        raise UnknownUserError(f"user {user!r}: not found within {timeout:g} s") from error
    if isinstance(found, UnknownUserError):
        raise found
    return found


def _look_up(user: str | None) -> Account | UnknownUserError:
    """Return the user or the error: gevent would print an exception raised in a thread."""
    try:
        return _own() if user is None else _named(user)
    except KeyError:
        return UnknownUserError(f"no user {user!r}")
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        return UnknownUserError(f"user {user!r}: {getattr(error, 'strerror', None) or error}")


def _named(user: str) -> Account:
    entry = pwd.getpwnam(user)
    groups = tuple(os.getgrouplist(user, entry.pw_gid))
    return Account(name=user, uid=entry.pw_uid, gid=entry.pw_gid, groups=groups, home=entry.pw_dir)


def _own() -> Account:
    uid, gid = os.geteuid(), os.getegid()
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:  # a container may run as a number without a name
        return Account(name=str(uid), uid=uid, gid=gid, groups=tuple(os.getgroups()), home="/")
    return Account(name=entry.pw_name, uid=uid, gid=gid, groups=tuple(os.getgroups()), home=entry.pw_dir)
