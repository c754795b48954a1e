"""Immediate notifications of the kernel that tables, chains or rules of nftables were removed.

The kernel sends messages of linux/netfilter/nf_tables.h for every transaction of any process, ours included:
the receiver must check what remains. Dropped notifications (ENOBUFS) count as a removal.
"""

import contextlib
import errno
import socket
import struct
import time
from collections.abc import Callable, Collection
from typing import Final

import gevent
from gevent import Greenlet
from gevent import socket as gevent_socket

from appliance.net.netlink.netfilter import NETLINK_NETFILTER, NFTABLES
from appliance.net.netlink.netlink import heads, open_socket
from appliance.net.netlink.rtnetlink import attributes

_GROUP: Final = 1 << 7 - 1  # NFNLGRP_NFTABLES of linux/netfilter/nfnetlink.h
_LENGTH: Final = struct.Struct("=I")
_BODY: Final = 20  # struct nlmsghdr and struct nfgenmsg
_REMOVALS: Final = frozenset(NFTABLES | each for each in (2, 5, 8))  # NFT_MSG_DELTABLE, _DELCHAIN, _DELRULE
_TABLE: Final = 1  # NFTA_TABLE_NAME, NFTA_CHAIN_TABLE, NFTA_RULE_TABLE
_RECEIVED: Final = 1 << 17
_AT_ONCE: Final = 16
_PAUSE: Final = 0.02  # minimum seconds between two turns
_COST: Final = 0.05  # maximum share of a processor for reading: others may write a thousand rules a second


class TableNotices:
    """Calls `on_removal` when a part of these tables was removed, until closed.

    If the kernel refuses the socket, neither callback runs. `on_fault` receives the exception of a bug.
    """

    def __init__(
        self,
        *tables: str,
        on_removal: Callable[[], None],
        on_fault: Callable[[BaseException | None], None],
    ) -> None:
        self._names = frozenset(each.encode() + b"\0" for each in tables)
        self._on_removal = on_removal
        self._socket: socket.socket | None = None
        self._turns: Greenlet | None = None
        with contextlib.suppress(OSError):
            self._socket = open_socket(_GROUP, protocol=NETLINK_NETFILTER)
        if self._socket is not None:
            self._turns = gevent.spawn(self._follow, self._socket)
            self._turns.link_exception(lambda ended: on_fault(ended.exception))

    def close(self) -> None:
        """Close the socket; another call is harmless."""
        if self._turns is not None:
            self._turns.kill()
        if self._socket is not None:
            self._socket.close()

    def _follow(self, notices: socket.socket) -> None:
        while True:
            gevent_socket.wait_read(notices.fileno())
            begun = time.thread_time()
            if self._removed(notices):
                self._on_removal()
            gevent.sleep(max(_PAUSE, (time.thread_time() - begun) / _COST))

    def _removed(self, notices: socket.socket) -> bool:
        found = False
        for _ in range(_AT_ONCE):
            try:
                datagram = notices.recv(_RECEIVED)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                found = True
            else:
                found = found or removes(datagram, self._names)
        return found


def removes(datagram: bytes, tables: Collection[bytes]) -> bool:
    """Return whether notifications report a removal from these tables; names end with a zero byte."""
    return any(
        kind in _REMOVALS and _table(datagram, at) in tables
        for at, kind, _flags, _sequence in heads(datagram)
    )


def _table(datagram: bytes, at: int) -> bytes:
    (length,) = _LENGTH.unpack_from(datagram, at)
    found = attributes(datagram[at + _BODY : at + length])
    return next((payload for kind, payload in found if kind == _TABLE), b"")
