"""The elements of a set of nftables, as their bytes.

Messages of linux/netfilter/nf_tables.h, decoded here: nft(8)'s library takes ten times as long for thousands.
"""

import socket
import struct
from collections.abc import Iterator
from typing import Final

from appliance.net.netlink.netlink import DUMP, REQUEST, Requests
from appliance.net.netlink.rtnetlink import attribute, attributes, by_kind
from appliance.wire.nftables.nftables_commands import Family

_NETLINK_NETFILTER: Final = 12  # linux/netlink.h
_HEADER: Final = struct.Struct("=IHHII")  # struct nlmsghdr of linux/netlink.h
_NETFILTER: Final = struct.Struct("=BBH")  # struct nfgenmsg of linux/netfilter/nfnetlink.h
_BODY: Final = _HEADER.size + _NETFILTER.size
_GET_ELEMENTS: Final = 10 << 8 | 13  # NFNL_SUBSYS_NFTABLES, NFT_MSG_GETSETELEM
_TABLE, _SET, _ELEMENTS = 1, 2, 3  # NFTA_SET_ELEM_LIST_...
_KEY, _VALUE = 1, 1  # NFTA_SET_ELEM_KEY, NFTA_DATA_VALUE
_NUMBERS: Final = {Family.IPV4: socket.AF_INET, Family.IPV6: socket.AF_INET6}  # NFPROTO_IPV4, NFPROTO_IPV6


class SetElements:
    """Sends one request at a time. The constructor and methods raise OSError; needs CAP_NET_ADMIN."""

    def __init__(self) -> None:
        self._requests = Requests(protocol=_NETLINK_NETFILTER)

    def close(self) -> None:
        """Close the socket."""
        self._requests.close()

    def of(self, family: Family, table: str, name: str) -> Iterator[bytes]:
        """Yield the elements of a set, none if it does not exist."""
        wanted = attribute(_TABLE, table.encode() + b"\0") + attribute(_SET, name.encode() + b"\0")
        length = _BODY + len(wanted)
        head = _HEADER.pack(length, _GET_ELEMENTS, REQUEST | DUMP, 0, 0)
        try:
            found = self._requests.dump(head + _NETFILTER.pack(_NUMBERS[family], 0, 0) + wanted)
        except FileNotFoundError:  # neither the table nor the set
            return
        for message in found:
            for _, element in attributes(by_kind(message.data[_BODY:]).get(_ELEMENTS, b"")):
                yield by_kind(by_kind(element).get(_KEY, b"")).get(_VALUE, b"")
