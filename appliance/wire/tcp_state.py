"""The state of one TCP connection, as one kernel gives it up and another one continues it (TCP_REPAIR).

Sequence numbers are those of RFC 9293, options as in its section 3.2 and in RFC 7323 and RFC 2018.
"""

from typing import Annotated, Final

import msgspec

MOST_QUEUED: Final = 32 << 20
"""Most bytes of one queue: a receive buffer of the largest default size (net.ipv4.tcp_rmem)."""

WINDOW: Final = 20
"""Size of struct tcp_repair_window of linux/tcp.h."""

_Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]
_Word = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
_Scale = Annotated[int, msgspec.Meta(ge=0, le=14)]  # RFC 7323, section 2.3
_Host = Annotated[str, msgspec.Meta(max_length=64, pattern=r"^[0-9a-fA-F:.]+$")]
_Queue = Annotated[bytes, msgspec.Meta(max_length=MOST_QUEUED)]


class Place(msgspec.Struct, frozen=True, array_like=True):
    """One end of a connection: a literal address without scope, and a port."""

    host: _Host
    port: _Port


class TcpState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A connection that is established, or that one or both ends have closed in one direction.

    `received` is what no program has read, `sent` what the peer has not acknowledged, and `unsent` what no
    segment had yet. `received_next` and `sent_next` are the sequence numbers after all that, our FIN not
    counted. `scales` are those of the peer's window and of ours, None without the option. `window` is the
    kernel's struct. `options` are of the socket, in the order of `migrate.tcp_repair.OPTIONS`.
    """

    local: Place
    peer: Place
    ipv6: bool
    mss: Annotated[int, msgspec.Meta(ge=1, le=65535)]
    scales: tuple[_Scale, _Scale] | None
    sack: bool
    timestamp: _Word | None
    received: _Queue
    received_next: _Word
    sent: _Queue
    unsent: _Queue
    sent_next: _Word
    shut: bool
    window: Annotated[bytes, msgspec.Meta(min_length=WINDOW, max_length=WINDOW)]
    options: Annotated[tuple[Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)], ...], msgspec.Meta(max_length=8)]

    @property
    def queued(self) -> int:
        """Return how many bytes go with it."""
        return len(self.received) + len(self.sent) + len(self.unsent)
