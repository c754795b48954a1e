"""The layout of a board: a small file in shared memory (mmap) with one writer and any number of readers.

A board holds two halves. The writer fills the half that the pointer does not name, then moves the pointer
with one aligned store of eight bytes. So a reader never waits for a writer, and a writer killed at any
instruction leaves the last published state readable.

No reader relies on the order of the writer's stores: a processor such as arm64 may reorder them, and Python
has no memory barriers. Each half has the number of its publish, the count of changes of its payload, and a
checksum over all of that. A reader uses a half only if the checksum is right and the number is the pointer's;
otherwise it starts over. So payload and count always belong to one publish; a reader that remembers the count
never takes an older payload for it, and misses no change.

Layout, native byte order (a board never leaves its machine)::

0   8  magic and layout version
    8   8  sequence: the pointer, grows with every publish; its lowest bit is the half that is valid
    16  8  retired: 1 when another file has this one's name by now
    24  .. reserved
    64  .. half 0, then half 1, each:
           0   8  sequence of this publish
           8   8  changes: grows when the writer says that the readers' decisions may change
           16  8  length of the payload
           24  8  CRC-32 of the three above and the payload
           32  .. payload
"""

import struct
import zlib
from typing import Final, NamedTuple

MAGIC: Final = int.from_bytes(b"LBBOARD2", "little")
HEADER: Final = 64
"""Bytes before the first half: a whole cache line of the processor."""

SEQUENCE: Final = 1
"""The word of eight bytes with the pointer."""

RETIRED: Final = 2
"""The word that makes readers open the path again."""

NUMBERS: Final = struct.Struct("=QQQ")
"""Sequence, changes and length of a half: what its checksum covers before the payload."""

HALF: Final = struct.Struct("=QQQQ")
"""The header of a payload: NUMBERS and the checksum."""


class BoardError(Exception):
    """The file is missing, damaged, or not a board of this layout."""


class Published(NamedTuple):
    """A payload, and the count of changes that belongs to it."""

    payload: bytes
    changes: int


def aligned(size: int) -> int:
    """Return the next multiple of eight: then each number of both halves is stored atomically."""
    return (size + 7) & ~7


def half_header(sequence: int, changes: int, payload: bytes | bytearray) -> bytes:
    """Return what a half has before its payload."""
    numbers = NUMBERS.pack(sequence, changes, len(payload))
    return numbers + struct.pack("=Q", checksum_of(numbers, payload))


def checksum_of(numbers: bytes, payload: bytes | bytearray) -> int:
    """Return the checksum of a half: over its packed NUMBERS, then its payload."""
    return zlib.crc32(payload, zlib.crc32(numbers))
