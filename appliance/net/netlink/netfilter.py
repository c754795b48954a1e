"""Requests to the kernel's netfilter, for its tables and its connections (linux/netfilter/nfnetlink.h)."""

import socket
import struct
from typing import Final

from appliance.net.closable import Closable
from appliance.net.netlink import netlink
from appliance.net.netlink.netlink import Message, Requests
from appliance.net.netlink.rtnetlink import by_kind
from appliance.wire.nftables.nftables_commands import Family

NETLINK_NETFILTER: Final = 12  # linux/netlink.h
NFTABLES: Final = 10 << 8
"""NFNL_SUBSYS_NFTABLES: its messages are those of linux/netfilter/nf_tables.h."""

NUMBERS: Final = {Family.IPV4: socket.AF_INET, Family.IPV6: socket.AF_INET6}
"""NFPROTO_IPV4, NFPROTO_IPV6."""

_HEAD: Final = struct.Struct("=BBH")  # struct nfgenmsg


class NetfilterRequests(Closable):
    """Sends one request at a time. The constructor and methods raise OSError; needs CAP_NET_ADMIN."""

    def __init__(self) -> None:
        self._requests = Requests(protocol=NETLINK_NETFILTER)

    def close(self) -> None:
        """Close the socket."""
        self._requests.close()


def request(kind: int, flags: int, *, family: int = socket.AF_UNSPEC, body: bytes = b"") -> bytes:
    """Return a request of this type."""
    return netlink.request(kind, flags, _HEAD.pack(family, 0, 0) + body)


def content(message: Message) -> bytes:
    """Return a message without its heads, which differ between answers."""
    return message.body[_HEAD.size :]


def fields(message: Message) -> dict[int, bytes]:
    """Return the attributes of a message."""
    return by_kind(content(message))
