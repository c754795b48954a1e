"""The kernel's table of connections (conntrack): those with our marks, counted, listed and deleted.

Messages of linux/netfilter/nfnetlink_conntrack.h. Decoded here because pyroute2 takes seven times longer to
count them (see netlink), and there may be tens of thousands. The kernel filters by mark.
"""

import contextlib
import errno
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from appliance.net.netlink.netfilter import NetfilterRequests, fields, request
from appliance.net.netlink.netlink import ACKNOWLEDGE, DUMP, Message
from appliance.net.netlink.rtnetlink import attribute, by_kind, one_decoding_error, readable

_SILENCE: Final = Path("/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established")
_GET: Final = 1 << 8 | 1  # NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_GET
_DELETE: Final = 1 << 8 | 2  # IPCTNL_MSG_CT_DELETE: without a tuple, all that have the mark (Linux 4.0)
_ORIGINAL, _REPLY, _STATUS, _PROTOCOL, _MARK, _MARK_MASK = 1, 2, 3, 4, 8, 21  # CTA_...
_REMAINING, _SENT, _ANSWERED, _ID, _TIMES = 7, 9, 10, 12, 20  # CTA_TIMEOUT, _COUNTERS_..., _ID, _TIMESTAMP
_BYTES, _START = 2, 1  # CTA_COUNTERS_BYTES, CTA_TIMESTAMP_START
_NESTED: Final = 0x8000  # NLA_F_NESTED
_OFFLOADED: Final = 1 << 14  # IPS_OFFLOAD of linux/netfilter/nf_conntrack_common.h
_ADDRESSES, _PORTS = 1, 2  # CTA_TUPLE_IP, CTA_TUPLE_PROTO
_NUMBER, _SOURCE_PORT, _DESTINATION_PORT = 1, 2, 3  # CTA_PROTO_NUM, CTA_PROTO_SRC_PORT, CTA_PROTO_DST_PORT
_TCP, _TCP_STATE = 1, 1  # CTA_PROTOINFO_TCP, CTA_PROTOINFO_TCP_STATE
_WORD: Final = struct.Struct("!I")
_PORT: Final = struct.Struct("!H")
_LONG: Final = struct.Struct("!Q")
_NANOSECONDS: Final = 1e9
_ESTABLISHED: Final = 3
_CONNECTING: Final = frozenset({1, 2})  # SYN_SENT and SYN_RECV
_OPEN: Final = frozenset({3, 4, 5})  # ESTABLISHED, FIN_WAIT and CLOSE_WAIT of nf_conntrack_tcp.h


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """One direction of a connection: source and destination."""

    source: str
    source_port: int
    destination: str
    destination_port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedConnection:
    """A connection: the client's packets and the server's replies, both before translation.

    It is `open` once both have sent, `established` if neither has closed. `remaining` is the seconds until it
    expires without packets, `started` Unix seconds if the kernel records them (nf_conntrack_timestamp).
    `sent` and `answered` are bytes of whole packets, if it counts them (nf_conntrack_acct). `id` is the
    kernel's. `offloaded` connections are in a flowtable.
    """

    mark: int
    client: Flow
    server: Flow
    open: bool
    connecting: bool = False
    established: bool = False
    id: int = 0
    remaining: int | None = None
    started: float | None = None
    sent: int | None = None
    answered: int | None = None
    offloaded: bool = False


class Conntrack(NetfilterRequests):
    """The table."""

    def open_by_mark(self, mark: int, mask: int, *, but: frozenset[str] = frozenset()) -> dict[int, int]:
        """Return how many connections are open for each mark that is `mark` in the bits of `mask`.

        Those to the addresses `but` are not counted: they are other nodes'.
        """
        skipped = frozenset(socket.inet_pton(_family(each), each) for each in but)
        found: dict[int, int] = {}
        for each in readable(partial(_mark_of_open, but=skipped), self._dump(mark, mask)):
            found[each] = found.get(each, 0) + 1
        return found

    def connections(
        self, mark: int, mask: int, *, but: frozenset[str] = frozenset()
    ) -> tuple[TrackedConnection, ...]:
        """Return the connections whose mark is `mark` in the bits of `mask`, none to the addresses `but`."""
        return tuple(self.each(mark, mask, but=but))

    def each(self, mark: int, mask: int, *, but: frozenset[str] = frozenset()) -> Iterator[TrackedConnection]:
        """Yield the same connections, decoded one by one: tens of thousands take a second."""
        found = readable(decode, self._dump(mark, mask))
        yield from (each for each in found if each.client.destination not in but)

    def delete(self, mark: int, mask: int) -> None:
        """Delete the connections, if any, whose mark is `mark` in the bits of `mask`."""
        for family in (socket.AF_INET, socket.AF_INET6):
            self._requests.change(_marked(_DELETE, ACKNOWLEDGE, family, mark, mask))

    def forget(self, connection: TrackedConnection) -> bool:
        """Delete one connection; return whether it still existed."""
        (status,) = self._requests.ask([_deletion(connection)])
        if status not in (0, errno.ENOENT):
            raise OSError(status, os.strerror(status))
        return status == 0

    def forget_flows(self, flows: Sequence[Flow]) -> None:
        """Delete the TCP connections with these directions, if they exist."""
        self._requests.change(*(_request_of(_DELETE, each) for each in flows), accepted={errno.ENOENT})

    def unknown(self, clients: Sequence[Flow]) -> list[Flow]:
        """Return those of these clients' directions of TCP connections that the kernel does not have."""
        asked = [_request_of(_GET, each) for each in clients]
        statuses = self._requests.ask(asked)
        return [each for each, status in zip(clients, statuses, strict=True) if status == errno.ENOENT]

    def _dump(self, mark: int, mask: int) -> list[Message]:
        return self._requests.dump(_marked(_GET, DUMP, socket.AF_UNSPEC, mark, mask))


def longest_silence() -> int | None:
    """Return after what silence the kernel forgets an open connection, None if it does not report that."""
    with contextlib.suppress(OSError, ValueError):
        return int(_SILENCE.read_text(encoding="ascii"))
    return None


def decode(message: Message) -> TrackedConnection | None:
    """Return the connection of a message; raises DamagedMessage."""
    with one_decoding_error():
        found = fields(message)
        state = _state(found)
        return TrackedConnection(
            mark=_mark(found),
            client=_flow(found[_ORIGINAL]),
            server=_flow(found[_REPLY]),
            open=state in _OPEN,
            connecting=state in _CONNECTING,
            established=state == _ESTABLISHED,
            id=_word(found, _ID) or 0,
            remaining=_word(found, _REMAINING),
            started=_started(found),
            sent=_long(found, _SENT, _BYTES),
            answered=_long(found, _ANSWERED, _BYTES),
            offloaded=_is_offloaded(found),
        )


def _mark_of_open(message: Message, *, but: frozenset[bytes]) -> int | None:
    with one_decoding_error():
        found = fields(message)
        if _state(found) not in _OPEN or (but and _destination(found) in but):
            return None
        return _mark(found)


def _destination(found: dict[int, bytes]) -> bytes:
    addresses = by_kind(by_kind(found[_ORIGINAL])[_ADDRESSES])
    return addresses[2] if 2 in addresses else addresses[4]  # CTA_IP_V4_DST, CTA_IP_V6_DST


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _mark(found: dict[int, bytes]) -> int:
    return _word(found, _MARK) or 0


def _state(found: dict[int, bytes]) -> int:
    """Return the state; a connection in a flowtable has none, but is established."""
    if _is_offloaded(found):
        return _ESTABLISHED
    return by_kind(by_kind(found.get(_PROTOCOL, b"")).get(_TCP, b"")).get(_TCP_STATE, b"\0")[0]


def _word(found: dict[int, bytes], kind: int) -> int | None:
    return int(_WORD.unpack(found[kind])[0]) if kind in found else None


def _long(found: dict[int, bytes], outer: int, inner: int) -> int | None:
    payload = by_kind(found.get(outer, b"")).get(inner)
    return None if payload is None else int(_LONG.unpack(payload)[0])


def _started(found: dict[int, bytes]) -> float | None:
    nanoseconds = _long(found, _TIMES, _START)
    return nanoseconds / _NANOSECONDS if nanoseconds else None


def _is_offloaded(found: dict[int, bytes]) -> bool:
    return bool(int.from_bytes(found.get(_STATUS, b"")) & _OFFLOADED)


def _flow(data: bytes) -> Flow:
    found = by_kind(data)
    source, destination = _addresses(by_kind(found[_ADDRESSES]))
    ports = by_kind(found[_PORTS])
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


def _deletion(connection: TrackedConnection) -> bytes:
    """Return the request to delete one connection, identified by the client's direction and its id."""
    return _request_of(_DELETE, connection.client, attribute(_ID, _WORD.pack(connection.id)))


def _request_of(kind: int, flow: Flow, more: bytes = b"") -> bytes:
    """Return a request about one TCP connection, identified by the client's direction."""
    family, first = (socket.AF_INET6, 3) if ":" in flow.source else (socket.AF_INET, 1)
    addresses = (socket.inet_pton(family, each) for each in (flow.source, flow.destination))
    found = b"".join(attribute(kind, each) for kind, each in enumerate(addresses, first))
    ports = attribute(_NUMBER, bytes([socket.IPPROTO_TCP]))
    ports += attribute(_SOURCE_PORT, _PORT.pack(flow.source_port))
    ports += attribute(_DESTINATION_PORT, _PORT.pack(flow.destination_port))
    original = attribute(_ADDRESSES | _NESTED, found) + attribute(_PORTS | _NESTED, ports)
    return request(kind, ACKNOWLEDGE, family=family, body=attribute(_ORIGINAL | _NESTED, original) + more)


def _marked(kind: int, flags: int, family: int, mark: int, mask: int) -> bytes:
    body = attribute(_MARK, _WORD.pack(mark)) + attribute(_MARK_MASK, _WORD.pack(mask))
    return request(kind, flags, family=family, body=body)
