"""The archive: descriptor first, then the manifest and the disk, as DSP0243 1.1, section 6, has it."""

import hashlib
import tarfile
from collections.abc import Sequence
from pathlib import Path


def manifest(files: Sequence[Path]) -> str:
    """Return the manifest: a line with the SHA-256 of each file."""
    return "".join(f"SHA256({file.name})= {_sha256(file)}\n" for file in files)


def write(ova: Path, files: Sequence[Path], *, epoch: int) -> None:
    """Write the files into an archive in this order, with nothing of this machine or moment in it."""
    scratch = ova.with_suffix(".new")
    with tarfile.open(scratch, "w", format=tarfile.USTAR_FORMAT) as archive:
        for file in files:
            entry = tarfile.TarInfo(file.name)
            entry.size, entry.mtime, entry.mode = file.stat().st_size, epoch, 0o644
            with file.open("rb") as data:
                archive.addfile(entry, data)
    scratch.replace(ova)


def _sha256(file: Path) -> str:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()
