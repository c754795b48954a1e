"""A value that differs whenever the screen might have to change, made of what is cheap to read."""

import contextlib
import os
import socket
from pathlib import Path

from appliance.console.screen.facts import interface_addresses
from appliance.guest.host_keys import SSH
from appliance.model.paths import Paths
from appliance.net.boards.board_layout import BoardError
from appliance.net.boards.board_reader import BoardReader
from appliance.net.netlink.links import Links
from appliance.wire.boards import vrrp_board
from appliance.wire.boards.health_board import BoardFormatError

Signature = tuple[object, ...]


def signature(paths: Paths, links: Links) -> Signature:
    """Return the signature now; costs a few system calls and asks no program."""
    files = (paths.config, paths.accepted, paths.guest_report, paths.supervisor_socket, paths.runtime, SSH)
    return (socket.gethostname(), interface_addresses(links), _states(paths), *map(_stamp, files))


def _states(paths: Paths) -> tuple[object, ...]:
    """Return the state of each virtual router, and how often the health board has changed."""
    found: list[object] = []
    with contextlib.suppress(BoardError, BoardFormatError), BoardReader(paths.vrrp_board) as reader:
        found += [(each.name, each.state) for each in vrrp_board.decode(reader.read()).routers]
    with contextlib.suppress(BoardError), BoardReader(paths.health_board) as reader:
        found.append(reader.changes)
    return tuple(found)


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_ino
