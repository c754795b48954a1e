"""The files of servers found in the cluster: one for this run, and a copy that outlives it.

`discover` writes them, `reload` and `run` read them. The copy is used at a start without the cluster's API.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from appliance.model.paths import Paths
from appliance.model.snapshot.found_servers import (
    NOTHING,
    FoundServers,
    FoundServersError,
    decode,
    encode,
)
from appliance.net.files import state_files
from appliance.net.files.atomic_write import write_atomically, write_whole
from appliance.net.files.state_files import FileUnusable
from appliance.wire.checksummed_json import ChecksumError, checksummed, verified


def read(paths: Paths) -> FoundServers:
    """Return the servers found last, none if neither file can be read."""
    for path in (paths.found_servers, paths.kept_found_servers):
        try:
            found = _read(path)
        except FoundServersError:
            continue  # `damaged` reports it, and is called at each start
        if found is not None:
            return found
    return NOTHING


def write(paths: Paths, found: FoundServers) -> None:
    """Write the found servers for `reload`; raises OSError."""
    _write(paths.found_servers, found, write_whole)


def keep(paths: Paths, found: FoundServers) -> None:
    """Write the copy for a start without the cluster's API; raises OSError."""
    paths.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    _write(paths.kept_found_servers, found, write_atomically)


def damaged(paths: Paths) -> Iterator[tuple[Path, str]]:
    """Yield which of the files cannot be read, and why."""
    for path in (paths.found_servers, paths.kept_found_servers):
        try:
            _read(path)
        except FoundServersError as error:
            yield path, str(error)


def _read(path: Path) -> FoundServers | None:
    try:
        data = state_files.read(path)
        return None if data is None else decode(verified(data))
    except (FileUnusable, ChecksumError, FoundServersError) as error:
        raise FoundServersError(f"{path}: {error}") from error


def _write(path: Path, found: FoundServers, write: Callable[[Path, bytes], None]) -> None:
    state_files.clear_way(path)
    write(path, checksummed(encode(found)))
