"""The PROXY protocol, versions 1 and 2: a header with the client's address before the client's stream.

Source: haproxy doc/proxy-protocol.txt, sections 2.1 (text) and 2.2 (binary). An endpoint is a literal address
and a port. An IPv4 client of a dual-stack listener is written as IPv4; if only one side is IPv4 the header is
IPv6 with that side mapped, because a header has one family.
"""

import struct
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from appliance.model.snapshot.pools import SendProxy
from appliance.wire.need import Need

Endpoint = tuple[str, int]

SIGNATURE: Final = b"\r\n\r\n\0\r\nQUIT\n"
_V1_START: Final = b"PROXY "
_V1_LIMIT: Final = 107  # section 2.1: the longest line, including its CRLF
_V2_HEAD: Final = struct.Struct("!12sBBH")
_LOCAL: Final = 0x20
_PROXY: Final = 0x21
_TCP4: Final = 0x11
_TCP6: Final = 0x21
_TCP4_ADDRESSES: Final = struct.Struct("!4s4sHH")
_TCP6_ADDRESSES: Final = struct.Struct("!16s16sHH")


class ProxyHeaderError(Exception):
    """The peer sent something other than a PROXY header."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyHeader:
    """A header and its `size` in bytes; endpoints are None for LOCAL, UNKNOWN and anything but TCP."""

    version: int
    source: Endpoint | None
    destination: Endpoint | None
    size: int


def encode(version: SendProxy, source: Endpoint, destination: Endpoint) -> bytes:
    """Return the header that a server with this setting expects: nothing for `none`."""
    if version is SendProxy.NONE:
        return b""
    return (encode_v1 if version is SendProxy.V1 else encode_v2)(source, destination)


def local(version: SendProxy) -> bytes:
    """Return the header of a connection on the proxy's own behalf, such as a health check."""
    if version is SendProxy.NONE:
        return b""
    return local_v1() if version is SendProxy.V1 else local_v2()


def encode_v1(source: Endpoint, destination: Endpoint) -> bytes:
    """Return the line of version 1."""
    one, other = _one_family(source[0], destination[0])
    return f"PROXY TCP{one.version} {one} {other} {source[1]} {destination[1]}\r\n".encode("ascii")


def encode_v2(source: Endpoint, destination: Endpoint) -> bytes:
    """Return the block of version 2, without extensions."""
    one, other = _one_family(source[0], destination[0])
    layout, family = (_TCP4_ADDRESSES, _TCP4) if one.version == 4 else (_TCP6_ADDRESSES, _TCP6)
    addresses = layout.pack(one.packed, other.packed, source[1], destination[1])
    return _V2_HEAD.pack(SIGNATURE, _PROXY, family, layout.size) + addresses


def local_v1() -> bytes:
    """Return the line of version 1 without addresses; the receiver uses those of the connection."""
    return b"PROXY UNKNOWN\r\n"


def local_v2() -> bytes:
    """Return the block of version 2 with the command LOCAL."""
    return _V2_HEAD.pack(SIGNATURE, _LOCAL, 0, 0)


def decode(buffer: bytes) -> ProxyHeader | Need:
    """Return the header at the start of `buffer`; raises ProxyHeaderError."""
    if buffer.startswith(_V1_START):
        return _decode_v1(buffer)
    if buffer.startswith(SIGNATURE):
        return _decode_v2(buffer)
    if _V1_START.startswith(buffer) or SIGNATURE.startswith(buffer):
        return Need.MORE
    raise ProxyHeaderError("no PROXY header")


def _one_family(source: str, destination: str) -> tuple[IPv4Address | IPv6Address, IPv4Address | IPv6Address]:
    one, other = _address(source), _address(destination)
    if one.version == other.version:
        return one, other
    return _as_v6(one), _as_v6(other)


def _address(text: str) -> IPv4Address | IPv6Address:
    address = ip_address(text.partition("%")[0])
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _as_v6(address: IPv4Address | IPv6Address) -> IPv6Address:
    return (
        address
        if isinstance(address, IPv6Address)
        else IPv6Address(b"\0" * 10 + b"\xff\xff" + address.packed)
    )


def _decode_v1(buffer: bytes) -> ProxyHeader | Need:
    end = buffer.find(b"\r\n", 0, _V1_LIMIT)
    if end < 0:
        if len(buffer) < _V1_LIMIT:
            return Need.MORE
        raise ProxyHeaderError(f"line of more than {_V1_LIMIT} bytes")
    words = buffer[len(_V1_START) : end].split(b" ")
    source, destination = (None, None) if words[0] == b"UNKNOWN" else _endpoints_v1(words)
    return ProxyHeader(version=1, source=source, destination=destination, size=end + 2)


def _endpoints_v1(words: list[bytes]) -> tuple[Endpoint, Endpoint]:
    try:
        family, source, destination, source_port, destination_port = [word.decode("ascii") for word in words]
        kind = {"TCP4": IPv4Address, "TCP6": IPv6Address}[family]
        ends = (str(kind(source)), _port(source_port)), (str(kind(destination)), _port(destination_port))
    except (ValueError, KeyError) as error:
        raise ProxyHeaderError(f"not a PROXY line: {error}") from error
    return ends


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 0xFFFF:
        raise ValueError(f"port {text!r}")
    return int(text)


def _decode_v2(buffer: bytes) -> ProxyHeader | Need:
    if len(buffer) < _V2_HEAD.size:
        return Need.MORE
    _, command, family, length = _V2_HEAD.unpack_from(buffer)
    if command not in (_LOCAL, _PROXY):
        raise ProxyHeaderError(f"version and command 0x{command:02x}")
    size = _V2_HEAD.size + length
    if len(buffer) < size:
        return Need.MORE
    block = buffer[_V2_HEAD.size : size]
    source, destination = _endpoints_v2(block, family) if command == _PROXY else (None, None)
    return ProxyHeader(version=2, source=source, destination=destination, size=size)


def _endpoints_v2(block: bytes, family: int) -> tuple[Endpoint | None, Endpoint | None]:
    if family not in (_TCP4, _TCP6):
        return None, None
    layout = _TCP4_ADDRESSES if family == _TCP4 else _TCP6_ADDRESSES
    if len(block) < layout.size:
        raise ProxyHeaderError(f"{len(block)} bytes of addresses")
    source, destination, source_port, destination_port = layout.unpack_from(block)
    return (str(ip_address(source)), source_port), (str(ip_address(destination)), destination_port)
