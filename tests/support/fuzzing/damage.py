"""What happens to bytes on their way, and to files of ours: what decoders and readers are fed with."""

import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final


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


def _bytes(make: Callable[[bytes], bytes]) -> "Spoil":
    def spoil(path: Path) -> None:
        path.write_bytes(make(path.read_bytes()))

    return spoil


def _instead(make: Callable[[Path], object]) -> "Spoil":
    def spoil(path: Path) -> None:
        path.unlink()
        make(path)

    return spoil


def _huge(path: Path) -> None:
    os.truncate(path, 100 << 20)  # sparse: costs no room


def _directory(path: Path) -> None:
    path.mkdir()
    (path / "something").touch()


def _socket(path: Path) -> None:
    directory = os.open(path.parent, os.O_PATH)  # a name of its own would be too long where tests run deep
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"/proc/self/fd/{directory}/{path.name}")
    os.close(directory)


def _flipped(at: float) -> Callable[[bytes], bytes]:
    def flip(data: bytes) -> bytes:
        place = int(at * (len(data) - 1))
        return data[:place] + bytes([data[place] ^ 0x04]) + data[place + 1 :]

    return flip


Spoil = Callable[[Path], None]

SPOILS: Final[Mapping[str, Spoil]] = {
    **{f"flipped-{tenth}": _bytes(_flipped(tenth / 10)) for tenth in range(11)},
    "cut": _bytes(lambda data: data[: len(data) // 2]),
    "cut-by-one": _bytes(lambda data: data.rstrip()[:-1]),
    "empty": _bytes(lambda _: b""),
    "zeros": _bytes(lambda data: bytes(len(data))),
    "huge": _huge,
    "nested": _bytes(lambda _: b"[" * 200_000),
    "nested-deeply": _bytes(lambda _: b'{"a":' * 200_000 + b"1" + b"}" * 200_000),
    "not-utf-8": _bytes(lambda _: b'{"\xff\xfe": "\xff"}'),
    "overflow": _bytes(lambda data: re.sub(rb"[0-9]+", b"9" * 30, data)),
    "overflow-u32": _bytes(lambda _: b'{"number": 4294967296}'),
    "another-type": _bytes(lambda _: b'"text"'),
    "a-list": _bytes(lambda _: b"[1, null, {}]"),
    "directory": _instead(_directory),
    "fifo": _instead(os.mkfifo),
    "socket": _instead(_socket),
    "dangling": _instead(lambda path: path.symlink_to("nowhere/at/all")),
    "device": _instead(lambda path: path.symlink_to("/dev/zero")),
}
"""What can become of a file of ours, by name."""
