"""VRRP advertisements: version 2 (RFC 3768) and version 3 (RFC 9568), over IPv4 and IPv6.

Received bytes give an Advertisement, or a VrrpError with its one reason; advertisements to send come from a
checked configuration, and ValueError there is a bug.
"""

import struct
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from appliance.model.drop_reasons import DropReason
from appliance.model.snapshot.virtual_router import Checksum
from appliance.wire.literal import packed, text
from appliance.wire.vrrp import internet_checksum

PROTOCOL: Final = 112
"""IP protocol number of VRRP (RFC 9568 section 5.1.1.4)."""

MULTICAST_4: Final = "224.0.0.18"
MULTICAST_6: Final = "ff02::12"

PASSWORD_BYTES: Final = 8
"""Bytes of version 2's authentication data (RFC 2338 section 5.3.10)."""

HMAC_BYTES: Final = 28
"""Bytes that keepalived's `auth_hmac` appends to an advertisement."""


class VrrpError(Exception):
    """A dropped packet, with the reason."""

    def __init__(self, reason: DropReason) -> None:
        self.reason = reason
        super().__init__(reason.value)


class AuthType(StrEnum):
    """Authentication of version 2 (RFC 2338; RFC 3768 reserves the field)."""

    NONE = "none"
    PASSWORD = "password"  # noqa: S105  # a type, no secret
    AH = "ah"


@dataclass(frozen=True, slots=True, kw_only=True)
class Advertisement:
    """One advertisement. `interval` is seconds: whole ones in version 2, hundredths to 40.95 in version 3.

    `addresses` are literal addresses without prefix length, in the order of the packet. `password` is the 8
    bytes of version 2's authentication data without the padding zeros, b"" for none.
    """

    version: Literal[2, 3]
    router_id: int
    priority: int
    interval: float
    addresses: tuple[str, ...]
    auth_type: AuthType = AuthType.NONE
    password: bytes = b""


_HEAD: Final = struct.Struct("!BBBBHH")
_ADVERTISEMENT: Final = 1  # RFC 9568 section 5.2.2: the only type
_AUTH_TYPES: Final = tuple(AuthType)  # RFC 2338 section 5.3.6 numbers them 0, 1, 2
_HUNDREDTHS: Final = 100
_CHECKSUM: Final = slice(6, 8)
_LONGEST: Final = 0xFFF  # RFC 9568 section 5.2.7: twelve bits of hundredths


def encode(
    advertisement: Advertisement,
    *,
    source: str,
    destination: str,
    checksum: Checksum = Checksum.PSEUDO_HEADER,
) -> bytes:
    """Return the VRRP message without IP header and HMAC trailer; raises ValueError if a value does not fit.

    A message without addresses is outside the RFC, but keepalived sends it for an instance that has none.

    Version 2 always has its 8 bytes of authentication data, over IPv6 the checksum always covers the
    pseudo-header (RFC 9568 section 5.2.8). A password of more than 8 bytes is cut, as in keepalived.
    """
    addresses = tuple(map(packed, advertisement.addresses))
    _require_family(advertisement, addresses, width=len(packed(source)))
    head = _HEAD.pack(
        advertisement.version << 4 | _ADVERTISEMENT,
        _within(advertisement.router_id, 1, 0xFF),
        _within(advertisement.priority, 0, 0xFF),
        _within(len(addresses), 0, 0xFF),
        _timing(advertisement),
        0,
    )
    message = b"".join((head, *addresses, _authentication(advertisement)))
    if _has_pseudo_header(advertisement, source=source, checksum=checksum):
        return _summed(message, before=_pseudo_header(message, source=source, destination=destination))
    return _summed(message, before=b"")


def _require_family(advertisement: Advertisement, addresses: tuple[bytes, ...], *, width: int) -> None:
    if any(len(address) != width for address in addresses):
        raise ValueError("an address of another family than the sender's")
    if advertisement.version == 2 and width != 4:
        raise ValueError("version 2 has no IPv6")


def _within(value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise ValueError(f"{value} is not within {least} and {most}")
    return value


def _timing(advertisement: Advertisement) -> int:
    """Return the 16 bits between the count and the checksum."""
    if advertisement.version == 3:
        return _within(round(advertisement.interval * _HUNDREDTHS), 1, _LONGEST)
    seconds = _within(round(advertisement.interval), 1, 0xFF)
    return _AUTH_TYPES.index(advertisement.auth_type) << 8 | seconds


def _authentication(advertisement: Advertisement) -> bytes:
    if advertisement.version == 3:
        return b""
    return advertisement.password[:PASSWORD_BYTES].ljust(PASSWORD_BYTES, b"\0")


def _has_pseudo_header(advertisement: Advertisement, *, source: str, checksum: Checksum) -> bool:
    if advertisement.version == 2:
        return False
    return checksum is Checksum.PSEUDO_HEADER or len(packed(source)) == 16


def _pseudo_header(message: bytes, *, source: str, destination: str) -> bytes:
    """Return the pseudo-header of RFC 8200 section 8.1, without zeros: they do not change a sum."""
    return packed(source) + packed(destination) + struct.pack("!HH", PROTOCOL, len(message))


def _summed(message: bytes, *, before: bytes) -> bytes:
    """Return a message, whose checksum field is zero, with the checksum over `before` and itself."""
    checksum = internet_checksum.checksum(before + message)
    return message[: _CHECKSUM.start] + checksum.to_bytes(2, "big") + message[_CHECKSUM.stop :]


def unsummed(message: bytes) -> bytes:
    """Return a message with zeros in place of its checksum."""
    return message[: _CHECKSUM.start] + bytes(2) + message[_CHECKSUM.stop :]


def with_trailer(message: bytes, trailer: bytes, *, source: str, destination: str) -> bytes:
    """Return message and trailer as one payload: over IPv6 the checksum covers both.

    keepalived lets its kernel compute it (IPV6_CHECKSUM), over the whole payload.
    """
    if len(packed(source)) == 4:
        return message + trailer
    whole = unsummed(message) + trailer
    return _summed(whole, before=_pseudo_header(whole, source=source, destination=destination))


def split(payload: bytes) -> tuple[bytes, bytes]:
    """Return the message, whose length follows from version and count, and the HMAC trailer after it or b"".

    A payload with neither length is returned whole, without a trailer: `decode` then reports the fault. The
    family need not be known, as no count makes an IPv6 message as long as an IPv4 one with trailer.
    """
    if len(payload) < _HEAD.size:
        return payload, b""
    lengths = (
        {_HEAD.size + payload[3] * 4 + PASSWORD_BYTES}
        if payload[0] >> 4 == 2
        else {_HEAD.size + payload[3] * width for width in (4, 16)}
    )
    end = len(payload) - HMAC_BYTES
    return (payload[:end], payload[end:]) if end in lengths else (payload, b"")


def decode(payload: bytes, *, source: str, destination: str, trailer: bytes = b"") -> Advertisement:
    """Return the advertisement in a message without IP header and trailer; raises VrrpError.

    The checks are those of RFC 9568 section 7.1 and RFC 3768 section 7.1 that need only the packet. Version 3
    over IPv4 may have either checksum: RFC 9568's, or the one with RFC 5798's pseudo-header. Over IPv6 the
    checksum covers the `trailer` too, because senders let their kernel compute it.
    """
    width = len(packed(source))
    _check_length(payload, width=width)
    if not _checksum_holds(payload, trailer, source=source, destination=destination):
        raise VrrpError(DropReason.CHECKSUM)
    if not payload[1]:  # RFC 9568 section 5.2.3: 1 to 255
        raise VrrpError(DropReason.ROUTER_ID)
    addresses = tuple(
        text(payload[at : at + width]) for at in range(_HEAD.size, _HEAD.size + payload[3] * width, width)
    )
    return _version_3(payload, addresses) if payload[0] >> 4 == 3 else _version_2(payload, addresses)


def _check_length(payload: bytes, *, width: int) -> None:
    if len(payload) < _HEAD.size:
        raise VrrpError(DropReason.TRUNCATED)
    version, kind = divmod(payload[0], 16)
    if version != 3 and (version != 2 or width != 4):  # version 2 has no IPv6
        raise VrrpError(DropReason.VERSION)
    if kind != _ADVERTISEMENT:
        raise VrrpError(DropReason.TYPE)
    length = _HEAD.size + payload[3] * width + (PASSWORD_BYTES if version == 2 else 0)
    if len(payload) != length:
        raise VrrpError(DropReason.TRUNCATED if len(payload) < length else DropReason.TRAILING)


def _checksum_holds(payload: bytes, trailer: bytes, *, source: str, destination: str) -> bool:
    if len(packed(source)) == 16:
        payload += trailer
    elif internet_checksum.holds(payload):
        return True
    elif payload[0] >> 4 == 2:
        return False
    return internet_checksum.holds(_pseudo_header(payload, source=source, destination=destination) + payload)


def _version_2(payload: bytes, addresses: tuple[str, ...]) -> Advertisement:
    auth_type, seconds = payload[4:6]
    if auth_type >= len(_AUTH_TYPES):
        raise VrrpError(DropReason.AUTH_TYPE)
    if not seconds:
        raise VrrpError(DropReason.INTERVAL)
    kind = _AUTH_TYPES[auth_type]
    return Advertisement(
        version=2,
        router_id=payload[1],
        priority=payload[2],
        interval=float(seconds),
        addresses=addresses,
        auth_type=kind,
        password=payload[-PASSWORD_BYTES:].rstrip(b"\0") if kind is AuthType.PASSWORD else b"",
    )


def _version_3(payload: bytes, addresses: tuple[str, ...]) -> Advertisement:
    # RFC 9568 section 5.2.6: the four reserved bits before the interval are ignored.
    hundredths = int.from_bytes(payload[4:6], "big") & _LONGEST
    if not hundredths:
        raise VrrpError(DropReason.INTERVAL)
    return Advertisement(
        version=3,
        router_id=payload[1],
        priority=payload[2],
        interval=hundredths / _HUNDREDTHS,
        addresses=addresses,
    )
