"""The note `degraded.json`: the configuration was broken at the start, its last-good copy runs.

`reload` writes and removes it, `appliance status` shows it.
"""

import dataclasses
from pathlib import Path

import msgspec

from appliance.model.paths import Paths
from appliance.net.files import readers, state_files
from appliance.net.files.atomic_write import write_whole
from appliance.wire.lines.control import AnswerProblem


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Degraded:
    """Why the appliance runs from its last-good copy; `since` is unix seconds."""

    since: float
    problems: tuple[AnswerProblem, ...]


def degraded_path(paths: Paths) -> Path:
    """Return the file that exists while the appliance runs from its last-good copy."""
    return paths.runtime / "degraded.json"


def write_degraded(paths: Paths, note: Degraded) -> None:
    """Write the note that `appliance status` shows; raises OSError."""
    write_whole(degraded_path(paths), msgspec.json.encode(note), mode=readers.file_mode(paths.runtime))


def read_degraded(paths: Paths) -> Degraded | None:
    """Return the note, None if the configuration was good."""
    return state_files.decoded(degraded_path(paths), Degraded)


def clear_degraded(paths: Paths) -> None:
    """Remove the note: the operator's file has been accepted; raises OSError."""
    state_files.clear_way(degraded_path(paths))
    degraded_path(paths).unlink(missing_ok=True)
