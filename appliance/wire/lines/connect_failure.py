"""One datagram from a worker to `health`: clients could not connect to a server.

It makes `health` check the server now (HAProxy's `observe layer4`). It changes no state by itself, and if one
is lost the next regular check finds the same.
"""

import msgspec

SIZE_LIMIT = 1024
"""Longest datagram, bytes; two names of 64 bytes in JSON are far shorter."""


class ConnectFailureError(Exception):
    """The datagram does not have a worker's format."""


class ConnectFailure(msgspec.Struct, frozen=True, array_like=True):
    """The server to which clients could not connect, by pool and name."""

    pool: str
    server: str


def encode(pool: str, server: str) -> bytes:
    """Return the datagram about a server."""
    return msgspec.json.encode(ConnectFailure(pool, server))


def decode(datagram: bytes) -> ConnectFailure:
    """Return the content of a datagram; raises ConnectFailureError."""
    if len(datagram) > SIZE_LIMIT:
        raise ConnectFailureError(f"more than {SIZE_LIMIT} bytes")
    try:
        return msgspec.json.decode(datagram, type=ConnectFailure)
    except (ValueError, RecursionError) as error:  # msgspec's own errors are ValueErrors
        raise ConnectFailureError(str(error)) from error
