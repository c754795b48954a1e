"""Limits of a group divided among its workers, as far as the limit of open files permits."""

from dataclasses import dataclass
from typing import Final

from appliance.model.snapshot.frontends import Group

_PIPES: Final = 256
"""Most pipes of a worker, as each holds up to a quarter of a megabyte of kernel memory."""

_RESERVED: Final = 64
"""Files of a worker that belong to no session: listeners, boards, control sockets, the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """How many files each worker may open, how many sessions fit in that, and how many are configured."""

    open_files: int
    sessions: int
    wanted: int


def shortage(group: Group, *, workers: int, open_files: int) -> Shortage | None:
    """Return the shortage of open files of a worker, None if it may open all that it can need.

    Only frontends with a pool count: sessions that the worker answers itself are over in a moment.
    """
    wanted = -(-sum(each.max_connections for each in group.frontends if each.pool) // workers)
    sessions = session_limit(open_files)
    return Shortage(open_files=open_files, sessions=sessions, wanted=wanted) if sessions < wanted else None


def session_limit(open_files: int) -> int:
    """Return the sessions that `open_files` allow a worker: each takes two, and pipes take some."""
    return max(1, (open_files - _RESERVED) // 2 - pipe_limit(open_files))


def pipe_limit(open_files: int) -> int:
    """Return the pipes for bulk that `open_files` allow a worker."""
    return max(2, min(_PIPES, open_files // 16))


def share(total: int, *, workers: int, index: int) -> int:
    """Return one worker's part of `total`, 0 (no limit) for 0.

    The parts add up to `total` (largest remainder), except that none is less than 1: a limit below the number
    of workers would otherwise leave some of them without the server that their clients wait for.
    """
    if total == 0:
        return 0
    return max(1, total // workers + (index % workers < total % workers))
