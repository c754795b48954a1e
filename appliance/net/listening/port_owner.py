"""The process that listens on a TCP port, as far as /proc shows it: for the error "address in use"."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTEN: Final = "0A"  # include/net/tcp_states.h


def port_owner(port: int) -> str | None:
    """Return "name (pid n)" of a process that listens on the port, None if that is not visible."""
    wanted = {f"socket:[{inode}]" for inode in _inodes(port)}
    if not wanted:
        return None
    for process in Path("/proc").glob("[0-9]*"):
        if not wanted.isdisjoint(_descriptors(process)):
            return f"{_name(process)} (pid {process.name})"
    return None


def _inodes(port: int) -> Iterator[str]:
    for table in _TABLES:
        with suppress(OSError):
            for line in table.read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                    yield fields[9]


def _descriptors(process: Path) -> Iterator[str]:
    with suppress(OSError):  # another user's, or gone by now
        for entry in (process / "fd").iterdir():
            with suppress(OSError):
                yield str(entry.readlink())


def _name(process: Path) -> str:
    with suppress(OSError):
        return (process / "comm").read_text().strip()
    return "a process"
