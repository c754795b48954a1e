"""How often supervisord has started each program: a file that it writes, and that metrics are made of.

It outlives supervisord, as the counters of workers do: they all begin with the runtime directory.
"""

from collections import Counter
from collections.abc import Mapping

import msgspec

from appliance.model.paths import Paths
from appliance.net.files import state_files
from appliance.net.files.atomic_write import write_atomically


class ProgramStarts:
    """The counts, going on from the file."""

    def __init__(self, paths: Paths) -> None:
        self._path = paths.program_starts
        self._counts = Counter(read(paths))

    def count(self, program: str) -> None:
        """Count a start; raises OSError where it cannot be written, and is counted all the same."""
        self._counts[program] += 1
        state_files.clear_way(self._path)
        write_atomically(self._path, msgspec.json.encode(self._counts))


def read(paths: Paths) -> Mapping[str, int]:
    """Return how often each program was started, nothing where no file tells."""
    counts = state_files.decoded(paths.program_starts, dict[str, int]) or {}
    return {name: count for name, count in counts.items() if count >= 0}
