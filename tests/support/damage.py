"""What happens to bytes on their way: the ways of damage that every decoder is fed with."""

from collections.abc import Iterator


def cuts(whole: bytes) -> Iterator[bytes]:
    """Yield every proper prefix, the empty one first."""
    return (whole[:end] for end in range(len(whole)))


def flips(whole: bytes) -> Iterator[bytes]:
    """Yield `whole` with each one of its bits changed."""
    for at in range(len(whole) * 8):
        changed = bytearray(whole)
        changed[at // 8] ^= 1 << at % 8
        yield bytes(changed)


def ones_complement_sum(data: bytes) -> int:
    """Add up 16-bit words as RFC 1071 section 1 describes it, word by word: 0xFFFF is a right checksum."""
    total = 0
    for at in range(0, len(data), 2):
        total += data[at] << 8 | data[at + 1]
        total = (total & 0xFFFF) + (total >> 16)
    return total
