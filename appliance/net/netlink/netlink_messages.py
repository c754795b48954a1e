"""pyroute2's classes of messages, imported without the rest of it.

`import pyroute2` brings a database, dozens of sockets and asyncio: a third of the time that a program needs
to start, and memory in each of them. Whoever needs all of it imports it as ever, before this module or after.
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
    """Let modules of a package be imported without what the package itself imports.

    The package is not known afterwards, unless it was before: its next import is a whole one.
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
