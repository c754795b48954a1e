"""One datagram from a worker to `health`: clients could not connect to a server.

It asks `health` to check the server now (HAProxy's `observe layer4`). It carries no verdict, and one that is
lost costs an interval.
"""

import msgspec

SIZE_LIMIT = 1024
"""Longest datagram; two names of 64 bytes in JSON have far less."""


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
