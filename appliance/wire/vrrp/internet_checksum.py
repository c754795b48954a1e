"""The checksum of RFC 1071: the one's complement of the one's complement sum of 16-bit words."""

from typing import Final

_MODULUS: Final = 0xFFFF  # one's complement addition of 16-bit words is addition modulo 2**16 - 1


def checksum(data: bytes) -> int:
    """Return the checksum of an even number of bytes, with a zero checksum field."""
    return -int.from_bytes(data, "big") % _MODULUS


def holds(data: bytes) -> bool:
    """Return whether an even number of bytes including a checksum is undamaged: their sum is then 0xFFFF."""
    return not int.from_bytes(data, "big") % _MODULUS
