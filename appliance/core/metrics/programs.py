"""Metrics of programs and workers: state, start time, and use of descriptors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from appliance.core.status.observations import Observations
from appliance.core.status.status import ProgramState, Status
from appliance.wire.exposition import Metric, counter, gauge, labels


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerDescriptors:
    """A worker's open descriptors, and its limit."""

    program: str
    generation: int
    index: int
    open: int
    limit: int


def program_metrics(
    status: Status, observations: Observations, descriptors: Sequence[WorkerDescriptors]
) -> Iterator[Metric]:
    """Yield the metrics of all programs that the configuration needs, and of all workers."""
    programs = [each for each in status.programs if each.expected]
    named = [(labels(program=each.name), each) for each in programs]
    about = "1 if a program that the configuration needs is running."
    running = [(name, int(each.state is ProgramState.RUNNING)) for name, each in named]
    yield gauge("appliance_program_up", about, running)
    about = "1 if a program is running without problems."
    yield gauge("appliance_program_ok", about, [(name, int(each.ok)) for name, each in named])
    about = "Unix time at which a program started: each change is a restart."
    started = [(name, status.at - each.uptime) for name, each in named if each.uptime is not None]
    yield gauge("appliance_program_start_time_seconds", about, [(name, round(at)) for name, at in started])
    about = "Restarts of a program, for any reason."
    starts = [(name, observations.starts.get(each.name, 0)) for name, each in named]
    yield counter("appliance_program_restarts", about, [(name, max(0, count - 1)) for name, count in starts])
    about = "Number of the configuration that a program uses."
    numbers = [(name, each.configuration) for name, each in named if each.configuration is not None]
    yield gauge("appliance_program_configuration", about, numbers)
    yield from _descriptors(descriptors)


def _descriptors(descriptors: Sequence[WorkerDescriptors]) -> Iterator[Metric]:
    named = [
        (labels(program=each.program, worker=f"{each.generation}.{each.index}"), each) for each in descriptors
    ]
    about = "Open descriptors of a worker: about two per session."
    yield gauge("appliance_worker_open_descriptors", about, [(name, each.open) for name, each in named])
    about = "Maximum of open descriptors of a worker."
    yield gauge("appliance_worker_max_descriptors", about, [(name, each.limit) for name, each in named])
