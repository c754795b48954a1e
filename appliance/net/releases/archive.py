"""An archive of `make dist`, lb-appliance-VERSION.tar.gz: compared with a checksum, and unpacked.

It has one folder of that name, and in it plain files: wheels, the hashes of all of them, units. Anything else
is refused before it is written, as is an oversized archive.
"""

import contextlib
import gzip
import hashlib
import os
import re
import shutil
import stat
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final, Protocol

MOST_BYTES: Final = 128 << 20
"""Most bytes of an archive; ours have about 10 MB."""

MOST_UNPACKED: Final = 256 << 20
"""Most bytes of its unpacked content."""

_MOST_FILES: Final = 500
_CHUNK: Final = 1 << 16
_NAME: Final = re.compile(r"lb-appliance-[0-9][0-9A-Za-z.+]{0,63}")
_FILE: Final = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_.+-]{0,199}")
_CHECKSUM: Final = re.compile(r"[0-9a-f]{64}")
_LONGEST_CHECKSUM: Final = 4096  # bytes of a file that holds one, with the archive's name behind it

_UNREADABLE: Final = (tarfile.TarError, OSError, EOFError, zlib.error, ValueError, OverflowError)
"""Exceptions of a damaged archive; its files are in memory or on a disk that was read before."""

_NO_ARCHIVE: Final = "it is damaged, or no archive"


class ArchiveRefused(Exception):  # noqa: N818  # what was found, not a mistake of ours
    """The file is not an archive of ours, or not the intended one."""


def open_archive(path: Path) -> IO[bytes]:
    """Return a file that may be an archive; raises ArchiveRefused and OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    file = os.fdopen(descriptor, "rb")
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_size <= MOST_BYTES:
        return file
    file.close()
    raise ArchiveRefused(f"{path}: no file of at most {MOST_BYTES >> 20} MB")


def private_copy(path: Path) -> IO[bytes]:
    """Return the content of an archive in memory of this process, which no one can change.

    Its file may belong to another user, and what is unpacked has to be what was verified. Raises
    ArchiveRefused and OSError.
    """
    with open_archive(path) as source:
        copy = os.fdopen(os.memfd_create("archive", os.MFD_CLOEXEC), "w+b")
        try:
            with naming(path):
                shutil.copyfileobj(_Bounded(source, MOST_BYTES), copy)
            copy.flush()
        except BaseException:
            copy.close()
            raise
    copy.seek(0)
    return copy


def expected_checksum(path: Path) -> str | None:
    """Return `path`.sha256's checksum (sha256sum(1)), None without it; raises ArchiveRefused and OSError."""
    beside = path.with_name(f"{path.name}.sha256")
    try:
        with beside.open("rb") as file:
            words = file.read(_LONGEST_CHECKSUM).decode(errors="replace").split()
    except FileNotFoundError:
        return None
    return checksum(words[0] if words else "", where=str(beside))


def checksum(text: str, *, where: str) -> str:
    """Return a SHA-256 checksum from text; raises ArchiveRefused, which names `where`."""
    if not _CHECKSUM.fullmatch(text.lower()):
        raise ArchiveRefused(f"{where}: not a SHA-256 checksum of 64 hexadecimal digits")
    return text.lower()


def digest(file: IO[bytes]) -> str:
    """Return the checksum of an open archive; rewinds it."""
    found = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # typeshed wants readinto
    file.seek(0)
    return found


def compare(file: IO[bytes], wanted: str) -> None:
    """Raise ArchiveRefused if an open archive has another checksum; rewinds it."""
    found = digest(file)
    if found != wanted:
        raise ArchiveRefused(
            f"it is damaged, or another one: its SHA-256 is {found}, and {wanted} was expected"
        )


def unpack(file: IO[bytes], folder: Path) -> str:
    """Unpack into an empty folder, and return the release's name; raises ArchiveRefused, and OSError."""
    stream = _Bounded(gzip.GzipFile(fileobj=file), MOST_UNPACKED)
    with _opened(stream) as archive:
        names = [_unpacked(archive, member, folder) for member in _members(archive)]
    while _read(stream):  # to the end, where gzip's checksum is
        continue
    if not names or len(set(names)) > 1 or not _NAME.fullmatch(names[0]):
        raise ArchiveRefused("it is not one folder lb-appliance-VERSION with files")
    return names[0]


def _opened(stream: "_Bounded") -> tarfile.TarFile:
    try:
        return tarfile.open(fileobj=stream, mode="r|")  # type: ignore[call-overload,no-any-return]  # typeshed wants more than is called
    except _UNREADABLE as error:
        raise ArchiveRefused(f"{_NO_ARCHIVE}: {error}") from error


def _unpacked(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> str:
    """Write one file, and return its folder in the archive; skips the folder itself."""
    name, _, short = member.name.partition("/")
    if member.isdir() and not short:
        return name
    # A sparse file may claim any size without content in the archive.
    if not member.isfile() or member.issparse() or not _FILE.fullmatch(short):
        raise ArchiveRefused(f"it has an entry that is no plain file of its folder: {member.name!r}")
    if (folder / short).exists():
        raise ArchiveRefused(f"it has two files of one name: {member.name!r}")
    source = archive.extractfile(member)
    with naming(folder / short), (folder / short).open("xb") as target:
        while source and (chunk := _read(source)):
            target.write(chunk)
    return name


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add a path to an OSError without one: an error of write has none."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def _read(source: "_Readable") -> bytes:
    try:
        return source.read(_CHUNK)
    except _UNREADABLE as error:
        raise ArchiveRefused(f"{_NO_ARCHIVE}: {error}") from error


class _Readable(Protocol):
    def read(self, size: int = ..., /) -> bytes: ...


class _Bounded:
    """The bytes of a file, up to a limit."""

    def __init__(self, source: _Readable, limit: int) -> None:
        self._source, self._limit, self._left = source, limit, limit

    def read(self, size: int = -1) -> bytes:
        """Return bytes; raises ArchiveRefused if there are too many."""
        chunk = self._source.read(size if size >= 0 else self._left + 1)
        self._left -= len(chunk)
        if self._left < 0:
            raise ArchiveRefused(f"it holds more than {self._limit >> 20} MB")
        return chunk


def _members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    for _ in range(_MOST_FILES):
        try:
            member = archive.next()
        except _UNREADABLE as error:
            raise ArchiveRefused(f"{_NO_ARCHIVE}: {error}") from error
        if member is None:
            return
        yield member
    raise ArchiveRefused(f"it holds more than {_MOST_FILES} files")
