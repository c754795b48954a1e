"""The configuration of conntrackd, which reports forwarded connections to other nodes (conntrackd.conf(5)).

No caches: what conntrackd learns is in the kernels' tables, and nowhere else, so a node that starts gets what
is true now. Events report established connections and ended ones: what a client has only begun it begins
again.

Only the node that has a virtual IP reports its connections: the entry of another node sees no packets and
expires, and conntrackd would have the others delete theirs; and one that reports what they have makes
them delete and add it again, which a packet may meet. So a node without virtual IPs accepts a protocol that
nobody has.

conntrackd's filters know addresses and no ports. One of addresses that are ignored tests both ends of the
client's direction in the kernel, so it cannot have those of forwarded connections. In conntrackd itself it
tests the client and the real server, so with the virtual IPs it leaves out exactly what ends at this node.
That costs a copy of each event, so it is only for virtual IPs where proxies listen too (`in_kernel`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

PORT: Final = 3780
"""conntrackd's own port: UDP from node to node."""

MOST_IGNORED: Final = 100
"""Most addresses in the kernel's filter (BPF of libnetfilter_conntrack); further ones are not filtered."""

_BUFFER: Final = 8 << 20  # bytes of a socket: a whole table of 10,000 connections arrives at once
_MOST_BUFFER: Final = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """How nodes reach each other: UDP to `peer` from `own`, both of `family`, or multicast if it is None.

    `group` is the virtual router's number, by which two clusters on one segment have different groups.
    """

    interface: str
    family: Literal[4, 6]
    own: str
    peer: str | None
    group: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConntrackdSettings:
    """What a configuration is made of; `ignored` are addresses whose connections are not sent to others.

    `reports` is whether this node has connections of its own to report.
    """

    channel: Channel
    reports: bool
    ignored: tuple[str, ...]
    in_kernel: bool
    control: str
    lock: str


def group_address(channel: Channel) -> str:
    """Return the multicast group: of the segment only, and of no registered use."""
    if channel.family == 4:
        return f"225.0.112.{channel.group}"
    return f"ff02::4c42:{channel.group:x}"


def conntrackd_config(settings: ConntrackdSettings) -> str:
    """Return the configuration."""
    return "\n".join((*_sync(settings.channel), *_general(settings), ""))


def _sync(channel: Channel) -> Iterator[str]:
    yield "Sync {"
    yield "  Mode NOTRACK { DisableInternalCache on"
    yield "    DisableExternalCache on }"
    yield "  UDP {" if channel.peer else "  Multicast {"
    yield from (f"    {each}" for each in (_unicast if channel.peer else _multicast)(channel))
    yield f"    Interface {channel.interface}"
    yield f"    SndSocketBuffer {_BUFFER}"
    yield f"    RcvSocketBuffer {_BUFFER}"
    yield "    Checksum on }"
    yield "}"


def _unicast(channel: Channel) -> Iterator[str]:
    version = f"IPv{channel.family}"
    yield f"{version}_address {channel.own}"
    yield f"{version}_Destination_Address {channel.peer}"
    yield f"Port {PORT}"


def _multicast(channel: Channel) -> Iterator[str]:
    version = f"IPv{channel.family}"
    yield f"{version}_address {group_address(channel)}"
    yield f"Group {PORT}"
    if channel.family == 4:
        yield f"{version}_interface {channel.own}"


def _general(settings: ConntrackdSettings) -> Iterator[str]:
    yield "General {"
    yield "  Systemd off"
    yield "  Syslog off"  # it writes to its output instead, which is a file of ours
    yield f"  LockFile {settings.lock}"
    yield f"  UNIX {{ Path {settings.control} }}"
    yield f"  NetlinkBufferSize {_BUFFER}"
    yield f"  NetlinkBufferSizeMaxGrowth {_MOST_BUFFER}"
    yield f"  Filter From {'Kernelspace' if settings.in_kernel else 'Userspace'} {{"
    yield f"    Protocol Accept {{ {'TCP' if settings.reports else 'DCCP'} }}"
    yield from _ignored(settings.ignored[:MOST_IGNORED] if settings.in_kernel else settings.ignored)
    yield "    State Accept { ESTABLISHED TIME_WAIT CLOSED for TCP }"
    yield "  }"
    yield "}"


def _ignored(addresses: Iterable[str]) -> Iterator[str]:
    yield "    Address Ignore {"
    yield from (f"      IPv{6 if ':' in each else 4}_address {each}" for each in addresses)
    yield "    }"
