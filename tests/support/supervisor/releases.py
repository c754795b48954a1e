"""Archives of releases, as `make dist` makes them and as it never would."""

import gzip
import io
import tarfile
from collections.abc import Mapping
from typing import Final

NAME: Final = "lb-appliance-9.9.9"
_FILES: Final = {"requirements.txt": b"click==1.0\n", "click-1.0-py3-none-any.whl": b"PK" * 400}
_BLOCK: Final = 512
_SUM: Final = slice(148, 156)


def archive(
    files: Mapping[str, bytes] = _FILES, *, name: str = NAME, kind: int = tarfile.GNU_FORMAT
) -> bytes:
    """Return a tar archive with these files in a folder."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=kind) as out:
        folder = tarfile.TarInfo(name)
        folder.type = tarfile.DIRTYPE
        out.addfile(folder)
        for each, content in files.items():
            entry = tarfile.TarInfo(f"{name}/{each}")
            entry.size = len(content)
            out.addfile(entry, io.BytesIO(content))
    return made.getvalue()


def with_entry(entry: tarfile.TarInfo) -> bytes:
    """Return an archive that has an entry of another kind behind its folder."""
    made = io.BytesIO(archive({}))
    with tarfile.open(fileobj=made, mode="a") as out:
        out.addfile(entry)
    return made.getvalue()


def compressed(data: bytes) -> bytes:
    """Return it as gzip does, always the same."""
    return gzip.compress(data, compresslevel=1, mtime=0)


def with_checksums(data: bytes) -> bytes:
    """Return an archive whose headers have the right checksums, so that what they say is met."""
    changed = bytearray(data)
    for at in range(0, len(changed) - _BLOCK + 1, _BLOCK):
        header = changed[at : at + _BLOCK]
        if header[257:262] == b"ustar":
            header[_SUM] = b" " * 8
            changed[at + _SUM.start : at + _SUM.stop] = b"%06o\0 " % sum(header)
    return bytes(changed)
