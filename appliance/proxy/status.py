"""The status of a proxy master."""

import os
import time
from dataclasses import asdict

from appliance.core.rollout.generations import Generation, TrackedWorker
from appliance.core.rollout.states import GenerationState
from appliance.model.paths import Paths
from appliance.net.boards.board_content import content
from appliance.net.process.limits import open_files
from appliance.proxy.master import ProxyMaster
from appliance.wire.boards import worker_board

Values = dict[str, object]


def status(master: ProxyMaster, *, started_at: float) -> Values:
    """Return the answer to `status`; all times are Unix seconds."""
    state, rollout = master.state, master.state.rollout
    accepting = rollout.accepting
    return {
        "program": state.program,
        "group": state.group,
        "pid": os.getpid(),
        "started_at": started_at,
        "snapshot": state.current.number if state.current else None,
        "generation": accepting.number if accepting else None,
        "generations": [
            _generation(master, each) for _, each in sorted(rollout.generations.items(), reverse=True)
        ],
        "listeners": [
            {"frontend": frontend, "host": address.host, "port": address.port}
            for frontend, address in state.frontends.get(accepting.number if accepting else -1, ())
        ],
        "prepared": state.pending.snapshot.number if state.pending else None,
        "stopping": state.stopping,
        "open_files": open_files(),
        "failure": asdict(state.failure) if state.failure else None,
    }


def _generation(master: ProxyMaster, generation: Generation) -> Values:
    workers = [_worker(master, each) for _, each in sorted(generation.workers.items())]
    sessions = [each["sessions"] for each in workers]
    return {
        "generation": generation.number,
        "snapshot": generation.snapshot,
        "phase": generation.state,
        "drain_deadline": _unix(generation.drain_deadline)
        if generation.state is GenerationState.DRAINING
        else None,
        "sessions": sum(each for each in sessions if isinstance(each, int)),
        "workers": workers,
    }


def _worker(master: ProxyMaster, worker: TrackedWorker) -> Values:
    return {
        "index": worker.id.index,
        "pid": master.workers.pid(worker.id),
        "phase": worker.state,
        "sessions": _sessions(master.state.paths, master.state.program, worker),
        "failures": worker.failures,
    }


def _sessions(paths: Paths, program: str, worker: TrackedWorker) -> int | None:
    """Return how many sessions a worker's board shows, None without a board."""
    path = paths.worker_board(program, worker.id.generation, worker.id.index)
    return content(path, worker_board.sessions)


def _unix(monotonic: float | None) -> float | None:
    return None if monotonic is None else time.time() + monotonic - time.monotonic()
