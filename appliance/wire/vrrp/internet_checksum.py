"""The checksum of RFC 1071: the one's complement of the one's complement sum of 16-bit words."""

from typing import Final

_MODULUS: Final = 0xFFFF  # one's complement addition of 16-bit words is addition modulo 2**16 - 1


def checksum(data: bytes) -> int:
    """Return the checksum of an even number of bytes, their checksum field zero."""
    return -int.from_bytes(data, "big") % _MODULUS


def holds(data: bytes) -> bool:
    """Say whether an even number of bytes has the right checksum in it."""
    return not int.from_bytes(data, "big") % _MODULUS
