"""The file that says what became of take-overs: whichever of the two supervisords is in charge writes it."""

import contextlib

import msgspec

from appliance.model.paths import Paths
from appliance.model.take_overs import TakeOvers
from appliance.net.files import readers, state_files
from appliance.net.files.atomic_write import write_atomically


def write(paths: Paths, note: TakeOvers) -> None:
    """Leave it for readers; raises OSError."""
    path = paths.take_overs
    state_files.clear_way(path)
    write_atomically(path, msgspec.json.encode(note), mode=readers.file_mode(path.parent))


def read(paths: Paths) -> TakeOvers:
    """Return it; as if there were none where it is not there or cannot be read."""
    return state_files.decoded(paths.take_overs, TakeOvers) or TakeOvers()


def remove(paths: Paths) -> None:
    """Remove what an earlier appliance has left."""
    state_files.clear_way(paths.take_overs)
    with contextlib.suppress(OSError):
        paths.take_overs.unlink()
