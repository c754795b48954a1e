"""ClientHellos as a client of TLS sends them: OpenSSL's own, and ones put together by hand."""

import ssl
import struct
from collections.abc import Sequence


def openssl_hello(name: str | None, *, most: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> bytes:
    """Return the first bytes that OpenSSL sends to a server of this name, None for one without a name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.maximum_version = most
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname=name)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("a handshake without a server")


def vector(size: int, content: bytes) -> bytes:
    """Return a content behind its length, which takes so many bytes."""
    return len(content).to_bytes(size) + content


def extension(kind: int, content: bytes) -> bytes:
    """Return one extension of a hello."""
    return struct.pack("!H", kind) + vector(2, content)


def server_name(name: bytes, *, kind: int = 0) -> bytes:
    """Return the extension server_name (RFC 6066 section 3)."""
    return extension(0, vector(2, bytes([kind]) + vector(2, name)))


def message(*extensions: bytes, kind: int = 1) -> bytes:
    """Return a hello as a message of the handshake, with these extensions; no field of them without any."""
    body = b"\x03\x03" + bytes(32) + vector(1, bytes(32)) + vector(2, b"\x13\x01") + vector(1, b"\0")
    if extensions:
        body += vector(2, b"".join(extensions))
    return bytes([kind]) + vector(3, body)


def records(content: bytes, sizes: Sequence[int] = ()) -> bytes:
    """Return a message in records of these sizes, the rest in the last one."""
    made, at = b"", 0
    for size in (*sizes, len(content)):
        piece = content[at : at + size]
        at += len(piece)
        made += b"\x16\x03\x01" + vector(2, piece) if piece else b""
    return made
