"""A streamOptimized VMDK, the form of a disk that vSphere imports."""

import errno
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from image.ova.identity import Identity

_HEADER_VERSION: Final = 3  # ESXi takes no other for this form; qemu writes it since 2.5.1
_SECTOR: Final = 512  # of the header
_DESCRIPTOR: Final = 20 * _SECTOR  # what qemu has behind it for the descriptor
_GRAIN: Final = 1 << 16  # what the form stores, or leaves out
_OPTIONS: Final = "subformat=streamOptimized,adapter_type=lsilogic,hwversion=15,toolsversion=2147483647"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Bytes of the disk, and of what is in use on it."""

    capacity: int
    populated: int


def convert(raw: Path, vmdk: Path, identity: Identity) -> Sizes:
    """Write the VMDK of a raw disk."""
    _qemu_img("convert", "-f", "raw", "-O", "vmdk", "-o", _OPTIONS, str(raw), str(vmdk))
    version = header_version(vmdk)
    if version != _HEADER_VERSION:
        raise ValueError(f"{vmdk}: qemu-img wrote version {version}, not {_HEADER_VERSION}")
    name_contents(vmdk, identity.content_id())
    return Sizes(capacity=raw.stat().st_size, populated=_populated(raw))


def header_version(vmdk: Path) -> int:
    """Return the version in the header."""
    with vmdk.open("rb") as file:
        header = file.read(8)
    if header[:4] != b"KDMV":
        raise ValueError(f"{vmdk} is no VMDK with a sparse extent")
    return int.from_bytes(header[4:8], "little")


def name_contents(vmdk: Path, content_id: str) -> None:
    """Replace the random number of the contents, which a snapshot would name as that of its parent.

    qemu writes it without leading zeros, and fills the descriptor's sectors up with zero bytes.
    """
    with vmdk.open("r+b") as file:
        file.seek(_SECTOR)
        descriptor = file.read(_DESCRIPTOR)
        number = f"CID={content_id}".encode()
        named, found = re.subn(rb"^CID=[0-9a-f]{1,8}$", number, descriptor.rstrip(b"\0"), flags=re.MULTILINE)
        if found != 1 or len(named) > _DESCRIPTOR:
            raise ValueError(f"{vmdk}: its descriptor has {found} content ids, not one, or no place for it")
        file.seek(_SECTOR)
        file.write(named.ljust(_DESCRIPTOR, b"\0"))


def _populated(raw: Path) -> int:
    """Return how many bytes are in pieces of the disk that are not empty."""
    total = 0
    with raw.open("rb") as file:
        end = raw.stat().st_size
        at = _data(file.fileno(), 0)
        while at < end:
            at -= at % _GRAIN
            file.seek(at)
            piece = file.read(_GRAIN)
            total += len(piece) if any(piece) else 0
            at = _data(file.fileno(), at + _GRAIN)
    return total


def _data(descriptor: int, at: int) -> int:
    """Return where the file has data next: what it says of holes may be less than there is."""
    try:
        return os.lseek(descriptor, at, os.SEEK_DATA)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return os.fstat(descriptor).st_size  # none behind it


def _qemu_img(*arguments: str) -> str:
    done = subprocess.run(  # noqa: S603  # by argument list
        ["qemu-img", *arguments],  # noqa: S607  # Debian's
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"qemu-img {' '.join(arguments)}: {done.stderr}")
    return done.stdout
