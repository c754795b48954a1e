"""Counts that outlive the counting process: starts of programs, reloads. One file each, for metrics.

They all begin with the runtime directory, as the counters of workers do.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from appliance.net.files import state_files
from appliance.net.files.atomic_write import write_whole


class KeptCounts:
    """The counts in the file at a path, continued from its content; `names` exist from the start."""

    def __init__(self, path: Path, *, names: Iterable[str] = ()) -> None:
        self._path = path
        self.counts = {**dict.fromkeys(names, 0), **read(path)}

    def count(self, name: str) -> None:
        """Count one; raises OSError if it cannot be written, but counts it nevertheless."""
        self.counts[name] = self.counts.get(name, 0) + 1
        state_files.clear_way(self._path)
        write_whole(self._path, msgspec.json.encode(self.counts))


def read(path: Path) -> Mapping[str, int]:
    """Return the counts by name, empty without a readable file."""
    counts = state_files.decoded(path, dict[str, int]) or {}
    return {name: count for name, count in counts.items() if count >= 0}
