"""The counters of exited workers, saved by their master before it removes their boards.

One file in the runtime directory per proxy: it is read and written when a worker exits, never by two
processes, as a proxy has one master. Counts that cannot be written are lost, which affects nothing else: the
worker is gone, and its successor waits for its place.
"""

import contextlib

from appliance.core.rollout.states import WorkerId
from appliance.model.paths import Paths
from appliance.net.boards.board_content import content
from appliance.net.files import readers, snapshots, state_files
from appliance.net.files.atomic_write import write_whole
from appliance.net.files.state_files import FileUnusable
from appliance.wire.boards import ended_workers, worker_board
from appliance.wire.boards.ended_workers import EndedWorkers, EndedWorkersError
from appliance.wire.boards.worker_board import WorkerBoard


def keep_counts(paths: Paths, program: str, worker: WorkerId) -> None:
    """Add a dead worker's counters to the sums of its program; without a board, add nothing."""
    board = _board(paths, program, worker)
    if board is None:
        return
    path = paths.ended_workers(program)
    sums = _current(paths, ended_workers.with_ended(_read(paths, program), board))
    state_files.clear_way(path)
    with contextlib.suppress(OSError):
        write_whole(path, ended_workers.encode(sums), mode=readers.file_mode(path.parent))


def load(paths: Paths, program: str) -> EndedWorkers:
    """Return the sums of a program's exited workers, zeros without a valid file."""
    with contextlib.suppress(EndedWorkersError, FileUnusable):
        data = state_files.read(paths.ended_workers(program))
        return EndedWorkers() if data is None else ended_workers.decode(data)
    return EndedWorkers()


def _read(paths: Paths, program: str) -> EndedWorkers:
    """Return the sums, and set a damaged file aside: it is about to be rewritten."""
    path = paths.ended_workers(program)
    try:
        data = state_files.read(path)
        return EndedWorkers() if data is None else ended_workers.decode(data)
    except (EndedWorkersError, FileUnusable):
        state_files.set_aside(path)
        return EndedWorkers()


def _board(paths: Paths, program: str, worker: WorkerId) -> WorkerBoard | None:
    path = paths.worker_board(program, worker.generation, worker.index)
    return content(path, worker_board.decode)


def _current(paths: Paths, sums: EndedWorkers) -> EndedWorkers:
    accepted = snapshots.readable(paths.accepted)
    if accepted is None:
        return sums
    return ended_workers.kept(
        sums,
        frontends={frontend.name for group in accepted.groups for frontend in group.frontends},
        servers={(pool.name, server.name) for pool in accepted.pools for server in pool.servers},
    )
