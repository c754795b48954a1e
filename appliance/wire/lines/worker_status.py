"""The answer of a worker to `status` and `adopt`, read by its proxy master.

The master may have another version than the worker: workers survive the start of a new version of the
program. So every field that the master does not need has a default, and unknown fields are ignored.
"""

from typing import Literal

import msgspec

WorkerStatusPhase = Literal["ready", "accepting", "draining"]
"""The names of `WorkerPhase` in lower case, as in the answer."""


class WorkerListener(msgspec.Struct, frozen=True, kw_only=True):
    """A listening socket of a worker, by its frontend."""

    frontend: str
    host: str
    port: int


class WorkerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one worker.

    `instance` is the start of the appliance that it belongs to. `workers` is the size of its generation,
    `snapshot` the number of the snapshot that it applies. `started_at` and `drain_deadline` are Unix seconds,
    the latter 0.0 while it does not drain. `listeners` is empty while it drains: it closes them, so no later
    master may use them.
    """

    pid: int
    phase: WorkerStatusPhase
    workers: int
    snapshot: int
    program: str = ""
    generation: int = 0
    index: int = 0
    version: str = ""
    instance: str = ""
    sessions: int = 0
    started_at: float = 0.0
    drain_deadline: float = 0.0
    listeners: tuple[WorkerListener, ...] = ()
