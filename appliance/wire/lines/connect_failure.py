"""One datagram from a worker to `health`: clients could not connect to a server.

It makes `health` check the server now (HAProxy's `observe layer4`). It changes no state by itself, and where
one is lost the next regular check finds the same.
"""

import msgspec

SIZE_LIMIT = 1024
"""Longest datagram, bytes; two names of 64 bytes in JSON are far shorter."""


class ConnectFailureError(Exception):
    """The datagram is not what a worker sends."""


class ConnectFailure(msgspec.Struct, frozen=True, array_like=True):
    """The server that clients could not connect to, by its pool and name."""

    pool: str
    server: str


def encode(pool: str, server: str) -> bytes:
    """Return the datagram about a server."""
    return msgspec.json.encode(ConnectFailure(pool, server))


def decode(datagram: bytes) -> ConnectFailure:
    """Return what a datagram says; raises ConnectFailureError."""
    if len(datagram) > SIZE_LIMIT:
        raise ConnectFailureError(f"more than {SIZE_LIMIT} bytes")
    try:
        return msgspec.json.decode(datagram, type=ConnectFailure)
    except (ValueError, RecursionError) as error:  # msgspec's own errors are ValueErrors
        raise ConnectFailureError(str(error)) from error
