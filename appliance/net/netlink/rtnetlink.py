"""What all rtnetlink messages have in common: attributes, requests, and one error for unreadable ones.

The messages are pyroute2's classes unless these are too slow (link_messages, address_messages).
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, TypeVar

from appliance.net.netlink.netlink import Message
from appliance.net.netlink.netlink_messages import NetlinkDecodeError, nlmsg

WORD: Final = struct.Struct("=I")
_ATTRIBUTE: Final = struct.Struct("=HH")
_KIND: Final = 0x3FFF  # NLA_TYPE_MASK of linux/netlink.h


class DamagedMessage(Exception):  # noqa: N818  # it is the message that is damaged
    """An unreadable message of the kernel."""


_Facts = TypeVar("_Facts")


def readable(decode: Callable[[Message], _Facts | None], messages: Iterable[Message]) -> Iterator[_Facts]:
    """Decode messages; omit those that are damaged or about something else (None)."""
    for message in messages:
        with suppress(DamagedMessage):
            facts = decode(message)
            if facts is not None:
                yield facts


def encode(message: nlmsg, *, kind: int, flags: int) -> bytes:
    """Return the bytes of a request; `Requests` writes the sequence number into it when it is sent."""
    message["header"]["type"] = kind
    message["header"]["flags"] = flags
    message.encode()
    return bytes(message.data)


@contextmanager
def one_decoding_error() -> Iterator[None]:
    """Turn every error of decoding into DamagedMessage; pyroute2 has no common error for them."""
    try:
        yield
    except (LookupError, TypeError, ValueError, struct.error, OSError, NetlinkDecodeError) as error:
        raise DamagedMessage(f"{type(error).__name__}: {error}") from error


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and payload of the attributes (struct rtattr) at the end of a message."""
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        yield kind, data[at + _ATTRIBUTE.size : at + length]
        # A length of 0 would loop forever; the kernel sends none.
        at += max((length + 3) & ~3, _ATTRIBUTE.size)


def by_kind(data: bytes) -> dict[int, bytes]:
    """Return the attributes by number without flags; in one loop, as this is most of a dump's cost."""
    found, at, last = dict[int, bytes](), 0, len(data) - _ATTRIBUTE.size
    while at <= last:
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        found[kind & _KIND] = data[at + _ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3 or _ATTRIBUTE.size
    return found


def attribute(kind: int, payload: bytes) -> bytes:
    """Return one attribute: length and number, payload, and zeros up to a multiple of four bytes."""
    padding = b"\0" * (-len(payload) % 4)
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(payload), kind) + payload + padding
