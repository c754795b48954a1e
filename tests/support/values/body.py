"""Bytes of any length that both ends can make, so that a transfer is checked without a file."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

CHUNK: Final = 1 << 16

# 1021 is prime, so the pattern never lines up with a buffer: bytes lost, doubled or swapped are seen.
_PATTERN: Final = bytes((i * 7 + i // 251) % 256 for i in range(1021)) * 1028


def chunks(size: int) -> Iterator[bytes]:
    """Yield the first `size` bytes."""
    for _ in range(size // len(_PATTERN)):
        yield _PATTERN
    yield _PATTERN[: size % len(_PATTERN)]


def checksum(size: int) -> str:
    """Return the SHA-256 of the first `size` bytes."""
    digest = hashlib.sha256()
    for chunk in chunks(size):
        digest.update(chunk)
    return digest.hexdigest()


def write(path: Path, size: int) -> None:
    """Write the first `size` bytes to a file."""
    with path.open("wb") as file:
        for chunk in chunks(size):
            file.write(chunk)
