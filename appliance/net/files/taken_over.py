"""The file that says from which appliance this one took over: for those who look."""

import contextlib
from dataclasses import dataclass

import msgspec

from appliance.model.paths import Paths
from appliance.net.files import readers, state_files
from appliance.net.files.atomic_write import write_atomically


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOver:
    """From whom, by which release of ours, and when in Unix seconds."""

    when: float
    version: str
    pid: int
    by: str


def write(paths: Paths, told: TakenOver) -> None:
    """Leave it for readers; without room on the disk there will be no file."""
    path = paths.taken_over
    state_files.clear_way(path)
    with contextlib.suppress(OSError):
        write_atomically(path, msgspec.json.encode(told), mode=readers.file_mode(path.parent))


def read(paths: Paths) -> TakenOver | None:
    """Return it, None where there is none or it cannot be read."""
    return state_files.decoded(paths.taken_over, TakenOver)


def remove(paths: Paths) -> None:
    """Remove what an earlier appliance has left."""
    state_files.clear_way(paths.taken_over)
    with contextlib.suppress(OSError):
        paths.taken_over.unlink()
