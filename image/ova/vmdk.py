"""A streamOptimized VMDK, the form of a disk that vSphere imports."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_HEADER_VERSION: Final = 3  # ESXi takes no other for this form; qemu writes it since 2.5.1
_OPTIONS: Final = "subformat=streamOptimized,adapter_type=lsilogic,hwversion=15,toolsversion=2147483647"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Bytes of the disk, and of what is in use on it."""

    capacity: int
    populated: int


def convert(raw: Path, vmdk: Path) -> Sizes:
    """Write the VMDK of a raw disk."""
    _qemu_img("convert", "-f", "raw", "-O", "vmdk", "-o", _OPTIONS, str(raw), str(vmdk))
    version = header_version(vmdk)
    if version != _HEADER_VERSION:
        raise ValueError(f"{vmdk}: qemu-img wrote version {version}, not {_HEADER_VERSION}")
    found = json.loads(_qemu_img("info", "--output", "json", str(raw)))
    return Sizes(capacity=int(found["virtual-size"]), populated=int(found["actual-size"]))


def header_version(vmdk: Path) -> int:
    """Return the version in the header."""
    with vmdk.open("rb") as file:
        header = file.read(8)
    if header[:4] != b"KDMV":
        raise ValueError(f"{vmdk} is no VMDK with a sparse extent")
    return int.from_bytes(header[4:8], "little")


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
