"""The record of addresses that we may have added to interfaces, for kernels that cannot mark them.

An address is recorded before it is added and forgotten after it is removed, so after a crash at any moment
the record has all our addresses, and perhaps some that do not exist. The file is replaced by rename(2) and
not synced: a power cut removes the addresses as well.
"""

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from appliance.net.files import state_files

Owned = tuple[str, str]
"""Interface and address with its prefix length."""


class AddressRecord:
    """The record in the file `path`. An unreadable file counts as empty: then no address is removed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries = _read(path)

    @property
    def entries(self) -> frozenset[Owned]:
        """Return the addresses that may be ours."""
        return self._entries

    def add(self, entries: Iterable[Owned]) -> None:
        """Record addresses; raises OSError if that fails: then they must not be added to an interface."""
        self._write(self._entries | frozenset(entries))

    def discard(self, entries: Iterable[Owned]) -> None:
        """Remove addresses from the record; raises OSError."""
        self._write(self._entries - frozenset(entries))

    def _write(self, entries: frozenset[Owned]) -> None:
        if entries == self._entries:
            return
        state_files.clear_way(self._path)
        scratch = self._path.with_name(self._path.name + ".new")
        try:
            scratch.write_bytes(msgspec.json.encode(sorted(entries)))
            scratch.replace(self._path)
        except OSError as error:
            error.filename, error.filename2 = str(self._path), None  # an error of write names no file
            raise
        self._entries = entries


def _read(path: Path) -> frozenset[Owned]:
    known = state_files.decoded(path, list[Owned])
    if known is None and os.path.lexists(path):  # also False without permission to look
        state_files.set_aside(path)
    return frozenset(known or ())
