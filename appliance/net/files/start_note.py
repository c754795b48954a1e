"""The note `start.json`: of which content of the operator's files `run` has made its first snapshot.

By it `reload` knows, without another check, that the files mean what is accepted. A reload that is requested
checks them nevertheless.
"""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from appliance.model.paths import Paths
from appliance.net.files import state_files
from appliance.net.files.atomic_write import write_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class StartNote:
    """`snapshot` is its number, `files` the digest of all files; `common` and `node` are as in `Loaded`."""

    snapshot: int
    files: str
    common: str
    node: str


def path(paths: Paths) -> Path:
    """Return the file."""
    return paths.runtime / "start.json"


def write(paths: Paths, note: StartNote) -> None:
    """Write the file; raises OSError."""
    state_files.clear_way(path(paths))
    write_whole(path(paths), msgspec.json.encode(note))


def read(paths: Paths) -> StartNote | None:
    """Return the note, None without a readable one."""
    return state_files.decoded(path(paths), StartNote)
