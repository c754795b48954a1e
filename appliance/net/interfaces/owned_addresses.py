"""The record of addresses that we may have put on interfaces, for kernels that cannot mark them.

An address is recorded before it is added and forgotten after it is removed, so after a crash at any moment
the record names every address of ours, and perhaps some that are not there.
"""

import json
from collections.abc import Iterable
from pathlib import Path

Owned = tuple[str, str]
"""Interface and address with its prefix length."""


class OwnedAddresses:
    """The record at `path`. One that cannot be read counts as empty: then nothing is removed as ours."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries = _read(path)

    @property
    def entries(self) -> frozenset[Owned]:
        """What may be ours."""
        return self._entries

    def add(self, entries: Iterable[Owned]) -> None:
        """Record them; raises OSError when that fails, and then they must not be added."""
        self._write(self._entries | frozenset(entries))

    def discard(self, entries: Iterable[Owned]) -> None:
        """Forget them; raises OSError."""
        self._write(self._entries - frozenset(entries))

    def _write(self, entries: frozenset[Owned]) -> None:
        if entries == self._entries:
            return
        scratch = self._path.with_name(self._path.name + ".new")
        scratch.write_text(json.dumps(sorted(entries)))
        scratch.replace(self._path)
        self._entries = entries


def _read(path: Path) -> frozenset[Owned]:
    try:
        return frozenset(
            (str(interface), str(address)) for interface, address in json.loads(path.read_bytes())
        )
    except (OSError, ValueError, TypeError):
        return frozenset()
