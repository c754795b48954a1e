"""Names as operators write them: of our own things, of groups of users, of files and sockets.

Every function takes whatever the file holds, returns the value, and raises ValueError with a message that
says what would be right.
"""

import re
from typing import Final

from appliance.model.messages.quoting import shown

GROUP_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_.-]{0,31}$"
NAME_PATTERN: Final = r"^[A-Za-z0-9._-]{1,63}$"

MOST_NODES: Final = 16
"""Nodes among which virtual IPs are spread, at most."""

_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,63}")
_LONGEST_SOCKET_PATH: Final = 107  # sockaddr_un of unix(7), with its final zero byte


def name(value: str) -> str:
    """Return the name of a frontend, pool or server: it must fit a board's record and a file's name."""
    if not _NAME.fullmatch(value):
        raise ValueError(
            f"{shown(value)} is not a name: 1 to 63 letters, digits, dots, hyphens and underscores"
        )
    return value


def nodes(values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of nodes: at least two, or there is nothing to spread, and none twice."""
    if not 1 < len(values) <= MOST_NODES:
        raise ValueError(f"must be a list of 2 to {MOST_NODES} names, not {len(values)}")
    twice = next((each for at, each in enumerate(values) if each in values[:at]), None)
    if twice is not None:
        raise ValueError(f"{shown(twice)} is listed twice")
    return values


def group_name(value: object) -> str:
    """Return the name of a group of users, as groupadd(8) takes it."""
    if isinstance(value, str) and re.fullmatch(GROUP_PATTERN, value):
        return value
    raise ValueError(f"must be the name of a group such as `monitoring`, not {shown(value)}")


def file_path(value: object) -> str:
    """Return the absolute path of a file."""
    if isinstance(value, str) and value.startswith("/") and "\0" not in value:
        return value
    raise ValueError(f"must be the absolute path of a file, from `/` on, not {shown(value)}")


def socket_path(value: object) -> str:
    """Return the absolute path of a unix socket."""
    path = file_path(value)
    if len(path.encode()) > _LONGEST_SOCKET_PATH:
        raise ValueError(f"{shown(path)} is longer than the {_LONGEST_SOCKET_PATH} bytes of a socket's path")
    return path


def stats_user(value: object) -> str:
    """Return the name of a user for HTTP's Basic authentication, where a colon ends it (RFC 7617)."""
    if isinstance(value, str) and value and value.isprintable() and ":" not in value:
        return value
    raise ValueError("must be a text of printable characters without a colon")


def stats_password(value: object) -> str:
    """Return the password of the page of statistics: printable, as HTTP's Basic authentication sends it."""
    if isinstance(value, str) and value and value.isprintable():
        return value
    raise ValueError("must be a text of printable characters, in quotes where it looks like a number")
