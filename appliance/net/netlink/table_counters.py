"""The counters of a table of nftables: all of both families by one request, or one of them.

Messages of linux/netfilter/nf_tables.h, decoded here: nft(8)'s library takes twenty times as long.
"""

import socket
import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from appliance.net.netlink.netfilter import NFTABLES, NetfilterRequests, fields, request
from appliance.net.netlink.netlink import ACKNOWLEDGE, DUMP
from appliance.net.netlink.rtnetlink import attribute, by_kind

_GET_OBJECTS: Final = NFTABLES | 19  # NFT_MSG_GETOBJ
_TABLE, _NAME, _TYPE, _DATA = 1, 2, 3, 4  # NFTA_OBJ_...
_COUNTER: Final = struct.pack("!I", 1)  # NFT_OBJECT_COUNTER
_PACKETS: Final = 2  # NFTA_COUNTER_PACKETS
_FAMILIES: Final = {4: int(socket.AF_INET), 6: int(socket.AF_INET6)}  # NFPROTO_IPV4, NFPROTO_IPV6
_VERSIONS: Final = {family: version for version, family in _FAMILIES.items()}


class TableCounters(NetfilterRequests):
    """The counters of all tables."""

    def packets(self, table: str) -> Mapping[tuple[int, str], int]:
        """Return the packets of each counter of the tables of that name, by version of IP and name."""
        wanted = attribute(_TABLE, table.encode() + b"\0") + attribute(_TYPE, _COUNTER)
        found: dict[tuple[int, str], int] = {}
        for message in self._requests.dump(request(_GET_OBJECTS, DUMP, body=wanted)):
            version = _VERSIONS.get(message.body[0])
            facts = fields(message)
            if version is not None:
                name = facts.get(_NAME, b"").rstrip(b"\0").decode(errors="replace")
                found[version, name] = _count(facts)
        return found

    def one(self, version: int, table: str, name: str) -> int | None:
        """Return the packets of one counter, None if it does not exist."""
        try:
            (message, *_) = self._requests.dump(_request(version, table, name))
        except FileNotFoundError:
            return None
        return _count(fields(message))


@lru_cache
def _request(version: int, table: str, name: str) -> bytes:
    wanted = attribute(_TABLE, table.encode() + b"\0") + attribute(_NAME, name.encode() + b"\0")
    wanted += attribute(_TYPE, _COUNTER)
    return request(_GET_OBJECTS, ACKNOWLEDGE, family=_FAMILIES[version], body=wanted)


def _count(facts: Mapping[int, bytes]) -> int:
    return int.from_bytes(by_kind(facts.get(_DATA, b"")).get(_PACKETS, b""), "big")
