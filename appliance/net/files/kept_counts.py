"""Counts that outlive who counts: starts of programs, reloads. A file each, of which metrics are made.

They all begin with the runtime directory, as the counters of workers do.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from appliance.net.files import state_files
from appliance.net.files.atomic_write import write_atomically


class KeptCounts:
    """The counts of the file at a path, going on from what it says; `names` are there from the start."""

    def __init__(self, path: Path, *, names: Iterable[str] = ()) -> None:
        self._path = path
        self.counts = {**dict.fromkeys(names, 0), **read(path)}

    def count(self, name: str) -> None:
        """Count one; raises OSError where it cannot be written, and it is counted all the same."""
        self.counts[name] = self.counts.get(name, 0) + 1
        state_files.clear_way(self._path)
        write_atomically(self._path, msgspec.json.encode(self.counts))


def read(path: Path) -> Mapping[str, int]:
    """Return the counts by name, nothing where no file tells."""
    counts = state_files.decoded(path, dict[str, int]) or {}
    return {name: count for name, count in counts.items() if count >= 0}
