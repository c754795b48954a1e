"""The file with the outcome of take-overs, written by the supervisord in charge."""

import contextlib

import msgspec

from appliance.model.paths import Paths
from appliance.model.take_overs import TakeOvers
from appliance.net.files import readers, state_files
from appliance.net.files.atomic_write import write_whole


def write(paths: Paths, note: TakeOvers) -> None:
    """Write the file for readers; raises OSError."""
    path = paths.take_overs
    state_files.clear_way(path)
    write_whole(path, msgspec.json.encode(note), mode=readers.file_mode(path.parent))


def read(paths: Paths) -> TakeOvers:
    """Return the content; as if there was no take-over if the file is missing or unreadable."""
    return state_files.decoded(paths.take_overs, TakeOvers) or TakeOvers()


def remove(paths: Paths) -> None:
    """Remove the file of an earlier appliance."""
    state_files.clear_way(paths.take_overs)
    with contextlib.suppress(OSError):
        paths.take_overs.unlink()
