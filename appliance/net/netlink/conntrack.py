"""The kernel's table of connections (conntrack): those with our marks, counted, listed and deleted.

Messages of linux/netfilter/nfnetlink_conntrack.h. They are read here and not by pyroute2, whose classes take
a hundred times longer: there may be tens of thousands. The kernel itself leaves out what has other marks.
"""

import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from appliance.net.netlink.netlink import ACKNOWLEDGE, DUMP, REQUEST, Message, Requests
from appliance.net.netlink.rtnetlink import attribute, attributes, one_decoding_error, readable

_NETLINK_NETFILTER: Final = 12  # linux/netlink.h
_HEADER: Final = struct.Struct("=IHHII")  # struct nlmsghdr of linux/netlink.h
_NETFILTER: Final = struct.Struct("=BBH")  # struct nfgenmsg of linux/netfilter/nfnetlink.h
_GET: Final = 1 << 8 | 1  # NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_GET
_DELETE: Final = 1 << 8 | 2  # IPCTNL_MSG_CT_DELETE: without a tuple, all that have the mark (Linux 4.0)
_KIND: Final = 0x3FFF  # NLA_TYPE_MASK of linux/netlink.h
_ORIGINAL, _REPLY, _PROTOCOL, _MARK, _MARK_MASK = 1, 2, 4, 8, 21  # CTA_...
_ADDRESSES, _PORTS = 1, 2  # CTA_TUPLE_IP, CTA_TUPLE_PROTO
_SOURCE_PORT, _DESTINATION_PORT = 2, 3  # CTA_PROTO_SRC_PORT, CTA_PROTO_DST_PORT
_TCP, _TCP_STATE = 1, 1  # CTA_PROTOINFO_TCP, CTA_PROTOINFO_TCP_STATE
_WORD: Final = struct.Struct("!I")
_PORT: Final = struct.Struct("!H")
_OPEN: Final = frozenset({3, 4, 5})  # ESTABLISHED, FIN_WAIT and CLOSE_WAIT of nf_conntrack_tcp.h


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """One direction of a connection: from whom to whom."""

    source: str
    source_port: int
    destination: str
    destination_port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedConnection:
    """A connection: what the client sends, and what its server answers, before both are translated."""

    mark: int
    client: Flow
    server: Flow
    open: bool


class Conntrack:
    """The table. Functions raise OSError."""

    def __init__(self) -> None:
        self._requests = Requests(protocol=_NETLINK_NETFILTER)

    def close(self) -> None:
        """Close the socket."""
        self._requests.close()

    def open_by_mark(self, mark: int, mask: int) -> dict[int, int]:
        """Return how many connections are open for each mark that is `mark` in the bits of `mask`."""
        found: dict[int, int] = {}
        for each in readable(_mark_of_open, self._dump(mark, mask)):
            found[each] = found.get(each, 0) + 1
        return found

    def connections(self, mark: int, mask: int) -> tuple[TrackedConnection, ...]:
        """Return the connections whose mark is `mark` in the bits of `mask`."""
        return tuple(readable(decode, self._dump(mark, mask)))

    def delete(self, mark: int, mask: int) -> None:
        """Delete the connections whose mark is `mark` in the bits of `mask`; there need not be any."""
        for family in (socket.AF_INET, socket.AF_INET6):
            (status,) = self._requests.ask([_request(_DELETE, REQUEST | ACKNOWLEDGE, family, mark, mask)])
            if status:
                raise OSError(status, os.strerror(status))

    def _dump(self, mark: int, mask: int) -> list[Message]:
        return self._requests.dump(_request(_GET, REQUEST | DUMP, socket.AF_UNSPEC, mark, mask))


def decode(message: Message) -> TrackedConnection | None:
    """Return the connection that a message is about; raises DamagedMessage."""
    with one_decoding_error():
        found = _attributes(_body(message))
        return TrackedConnection(
            mark=_mark(found),
            client=_flow(found[_ORIGINAL]),
            server=_flow(found[_REPLY]),
            open=_is_open(found),
        )


def _mark_of_open(message: Message) -> int | None:
    with one_decoding_error():
        found = _attributes(_body(message))
        return _mark(found) if _is_open(found) else None


def _body(message: Message) -> bytes:
    return message.data[_HEADER.size + _NETFILTER.size :]


def _attributes(data: bytes) -> dict[int, bytes]:
    return {kind & _KIND: payload for kind, payload in attributes(data)}


def _mark(found: dict[int, bytes]) -> int:
    return int(_WORD.unpack(found[_MARK])[0]) if _MARK in found else 0


def _is_open(found: dict[int, bytes]) -> bool:
    state = _attributes(_attributes(found.get(_PROTOCOL, b"")).get(_TCP, b"")).get(_TCP_STATE, b"\0")
    return state[0] in _OPEN


def _flow(data: bytes) -> Flow:
    found = _attributes(data)
    source, destination = _addresses(_attributes(found[_ADDRESSES]))
    ports = _attributes(found[_PORTS])
    return Flow(
        source=source,
        source_port=_PORT.unpack(ports[_SOURCE_PORT])[0],
        destination=destination,
        destination_port=_PORT.unpack(ports[_DESTINATION_PORT])[0],
    )


def _addresses(found: dict[int, bytes]) -> Iterator[str]:
    """Yield source and destination: CTA_IP_V4_SRC, _DST are 1 and 2, those of IPv6 3 and 4."""
    family, first = (socket.AF_INET, 1) if 1 in found else (socket.AF_INET6, 3)
    return (socket.inet_ntop(family, found[each]) for each in (first, first + 1))


def _request(kind: int, flags: int, family: int, mark: int, mask: int) -> bytes:
    body = _NETFILTER.pack(family, 0, 0)
    body += attribute(_MARK, _WORD.pack(mark)) + attribute(_MARK_MASK, _WORD.pack(mask))
    return _HEADER.pack(_HEADER.size + len(body), kind, flags, 0, 0) + body
