"""pyroute2's classes of messages, imported without the rest of it.

`import pyroute2` loads a database, dozens of sockets and asyncio: a third of a program's starting time, and
memory in each program. All of pyroute2 can still be imported, before this module or after.
"""

import contextlib
import importlib.util
import sys
from collections.abc import Iterator

__all__ = [
    "RTM_DELADDR",
    "RTM_DELLINK",
    "RTM_GETADDR",
    "RTM_GETLINK",
    "RTM_NEWADDR",
    "RTM_NEWLINK",
    "RTM_SETLINK",
    "NetlinkDecodeError",
    "ifaddrmsg",
    "ifinfmsg",
    "nlmsg",
]


@contextlib.contextmanager
def bare(package: str) -> Iterator[None]:
    """Let modules of a package be imported without the package's own imports.

    Afterwards `sys.modules` has the package only if it had it before: the next import is a full one.
    """
    found = importlib.util.find_spec(package)
    if package in sys.modules or found is None:
        yield
        return
    sys.modules[package] = importlib.util.module_from_spec(found)
    try:
        yield
    finally:
        del sys.modules[package]


with bare("pyroute2"):
    from pyroute2.netlink import nlmsg
    from pyroute2.netlink.exceptions import NetlinkDecodeError
    from pyroute2.netlink.rtnl import (
        RTM_DELADDR,
        RTM_DELLINK,
        RTM_GETADDR,
        RTM_GETLINK,
        RTM_NEWADDR,
        RTM_NEWLINK,
        RTM_SETLINK,
    )
    from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
    from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
