"""The server name in a TLS ClientHello (SNI), read as it arrives: RFC 8446 section 4.1.2, RFC 6066 section 3.

A hello may arrive in pieces of any size, and in several records (RFC 8446 section 5.1). Nothing is decrypted:
if the name itself is encrypted (ECH) the outer one is read, as by any server in front.
"""

from dataclasses import dataclass
from typing import Final

from appliance.wire.need import Need

LIMIT: Final = 16_384
"""Most bytes from a client by which the hello must end, including the headers of its records."""

_HANDSHAKE: Final = 22
_CLIENT_HELLO: Final = 1
_SERVER_NAME: Final = 0
_HOST_NAME: Final = 0
_RECORD_HEADER: Final = 5
_MESSAGE_HEADER: Final = 4
_LONGEST_RECORD: Final = 16_384
_LONGEST_NAME: Final = 255
"""Most bytes of a name in DNS (RFC 1035 section 2.3.4)."""


class HelloError(Exception):
    """The client sent no ClientHello, a too long one, or one with an invalid name."""


@dataclass(frozen=True, slots=True)
class ClientHello:
    """A complete hello. `server_name` is in lower case (RFC 4343), None if it has none."""

    server_name: str | None


class HelloReader:
    """Reads one hello; `feed` takes the next bytes from the client."""

    __slots__ = ("_message", "_record", "_size")

    def __init__(self) -> None:
        self._size = 0
        self._record = bytearray()
        self._message = bytearray()

    def feed(self, data: bytes) -> ClientHello | Need:
        """Return the hello once it is complete; further data is ignored. Raises HelloError."""
        self._record += data[: LIMIT - self._size]
        self._size += len(data)
        self._take_records()
        if len(self._message) >= _MESSAGE_HEADER:
            end = self._end_of_message()
            if len(self._message) >= end:
                return ClientHello(_server_name(_Cursor(bytes(self._message[_MESSAGE_HEADER:end]))))
        if self._size >= LIMIT:
            raise HelloError(f"no ClientHello ends in the first {LIMIT} bytes")
        return Need.MORE

    def _take_records(self) -> None:
        """Move the content of complete records to the message."""
        record, at = self._record, 0
        while True:
            _check_header(record[at : at + _RECORD_HEADER])
            if len(record) < at + _RECORD_HEADER:
                break
            end = at + _RECORD_HEADER + int.from_bytes(record[at + 3 : at + _RECORD_HEADER])
            if len(record) < end:
                break
            self._message += record[at + _RECORD_HEADER : end]
            at = end
            if len(self._message) >= _MESSAGE_HEADER and len(self._message) >= self._end_of_message():
                break
        del record[:at]

    def _end_of_message(self) -> int:
        if self._message[0] != _CLIENT_HELLO:
            raise HelloError("the first message of the handshake is no ClientHello")
        end = _MESSAGE_HEADER + int.from_bytes(self._message[1:_MESSAGE_HEADER])
        if end > LIMIT:
            raise HelloError(f"a ClientHello of more than {LIMIT} bytes")
        return end


def _check_header(header: bytes | bytearray) -> None:
    """Raise HelloError if this cannot be the header of a record with a part of a handshake."""
    if header and header[0] != _HANDSHAKE:
        raise HelloError("not the beginning of a TLS handshake")
    if len(header) > 1 and header[1] != 3:  # RFC 8446 section 5.1: of any version since SSL 3.0
        raise HelloError("not a version of TLS")
    if len(header) == _RECORD_HEADER and not 0 < int.from_bytes(header[3:]) <= _LONGEST_RECORD:
        raise HelloError("a record of TLS that is empty or too long")


class _Cursor:
    """Parses a hello from left to right; raises an error if it ends early."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def at_end(self) -> bool:
        return self._at == len(self._data)

    def take(self, size: int) -> bytes:
        found = self._data[self._at : self._at + size]
        if len(found) < size:
            raise HelloError("a length in the ClientHello is beyond its end")
        self._at += size
        return found

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def vector(self, size: int) -> "_Cursor":
        """Take the data after its length, a number of `size` bytes."""
        return _Cursor(self.take(self.number(size)))


def _server_name(hello: _Cursor) -> str | None:
    hello.take(2 + 32)  # legacy_version, random
    hello.vector(1)  # legacy_session_id
    hello.vector(2)  # cipher_suites
    hello.vector(1)  # legacy_compression_methods
    if hello.at_end:
        return None  # TLS 1.2 may end here (RFC 5246 section 7.4.1.2)
    found: str | None = None
    extensions = hello.vector(2)
    while not extensions.at_end:
        kind, content = extensions.number(2), extensions.vector(2)
        if kind != _SERVER_NAME:
            continue
        if found is not None:
            raise HelloError("two extensions server_name")
        found = _host_name(content)
    return found


def _host_name(extension: _Cursor) -> str:
    names = extension.vector(2)
    if names.number(1) != _HOST_NAME:
        raise HelloError("a server_name that is no host_name")
    name = names.take(names.number(2))
    if not 0 < len(name) <= _LONGEST_NAME or not name.isascii() or not names.at_end:
        raise HelloError("a server_name that is no name of a host")
    return name.decode("ascii").lower()
