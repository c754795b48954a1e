"""Which event may come in which state: the tables, what they promise, and what is not in them."""

import itertools
import re

import pytest

from appliance.core.rollout import event_tables
from appliance.core.rollout.effects import Unexpected
from appliance.core.rollout.event_tables import FORGOTTEN, CommandTable, States, WorkerTable, late
from appliance.core.rollout.events import (
    Abort,
    Accepted,
    Adopt,
    ApplyLive,
    CommandEvent,
    Commit,
    Exited,
    Expired,
    Orphan,
    OrphanAnswered,
    Prepare,
    Ready,
    Resume,
    Retire,
    SnapshotApplied,
    SnapshotRefused,
    WorkerEvent,
)
from appliance.core.rollout.generations import Generation, TrackedWorker
from appliance.core.rollout.rollout import Rollout
from appliance.core.rollout.states import GenerationState, WorkerId, WorkerState
from appliance.core.rollout.timing import DrainSettings

pytestmark = pytest.mark.pure

SETTINGS = DrainSettings(drain=120.0, max_draining=2)
WORKER = WorkerId(1, 0)
WORKER_TABLES: dict[WorkerEvent, WorkerTable] = {
    Ready(WORKER): event_tables.READY,
    Accepted(WORKER): event_tables.ACCEPTED,
    Exited(WORKER, "gone"): event_tables.EXITED,
    SnapshotApplied(WORKER, 1): event_tables.APPLIED,
    SnapshotRefused(WORKER, 1, "no"): event_tables.REFUSED,
    OrphanAnswered(
        generation=1, orphan=Orphan(index=0, snapshot=1, state=WorkerState.ACCEPTING)
    ): event_tables.ANSWERED,
    Expired(WORKER): event_tables.EXPIRED,
}
COMMAND_TABLES: dict[CommandEvent, CommandTable] = {
    Prepare(generation=2, snapshot=2, workers=1): event_tables.PREPARE,
    Commit(SETTINGS): event_tables.COMMIT,
    Abort(): event_tables.ABORT,
    ApplyLive(snapshot=2, drain_settings=SETTINGS): event_tables.APPLY_LIVE,
    Adopt(generation=2, workers=1, orphans=()): event_tables.ADOPT,
    Resume(snapshot=2, drain_settings=SETTINGS): event_tables.RESUME,
    Retire(within=1.0): event_tables.RETIRE,
}


def rollout(place: States | None) -> Rollout:
    """Return a machine with one worker in a state, None for none."""
    machine = Rollout(drain_settings=SETTINGS)
    if place is not None:
        worker = TrackedWorker(id=WORKER, state=place[1])
        generation = Generation(number=1, snapshot=1, size=1, state=place[0], workers={0: worker})
        machine.generations[1] = generation
    return machine


def drawn() -> set[States]:
    """Return the states together that the docstring lists."""
    rows = re.findall(r"^    ([A-Z]+) +([A-Z ]+)$", event_tables.__doc__ or "", re.MULTILINE)
    return {
        (GenerationState[generation], WorkerState[worker])
        for generation, workers in rows
        for worker in workers.split()
    }


PLACES = list(itertools.product(GenerationState, WorkerState))


def test_the_states_that_the_docstring_lists_are_those_of_the_tables() -> None:
    """An event may come in all of them, and in no others."""
    assert drawn() == {place for table in WORKER_TABLES.values() for place in table}


@pytest.mark.parametrize("event", WORKER_TABLES, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("place", PLACES, ids="-".join)
def test_an_event_that_cannot_come_is_reported(event: WorkerEvent, place: States) -> None:
    """It changes nothing; one that is in its table is handled, in every state that it is there for."""
    machine = rollout(place)
    effects = machine.handle(event, now=1.0)
    state = f"{place[0]}/{place[1]}"
    report = Unexpected(event=type(event).__name__, state=state, worker=WORKER)
    if place in WORKER_TABLES[event]:
        assert report not in effects
        return
    assert effects == [report]
    assert [each.state for each in machine.generations[1].workers.values()] == [place[1]]


@pytest.mark.parametrize("event", WORKER_TABLES, ids=lambda each: type(each).__name__)
def test_events_of_a_forgotten_worker(event: WorkerEvent) -> None:
    """What may come after an abort is expected, the rest is reported."""
    effects = rollout(None).handle(event, now=1.0)
    report = Unexpected(event=type(event).__name__, state="forgotten", worker=WORKER)
    assert effects == ([] if type(event) in FORGOTTEN else [report])


@pytest.mark.parametrize("event", COMMAND_TABLES, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("state", [None, GenerationState.STARTING, GenerationState.READY])
def test_a_command_that_cannot_come_is_reported(event: CommandEvent, state: GenerationState | None) -> None:
    """It changes nothing."""
    machine = rollout(None if state is None else (state, WorkerState.READY))
    effects = machine.handle(event, now=1.0)
    report = Unexpected(event=type(event).__name__, state=state or "none")
    assert (effects == [report]) == (state not in COMMAND_TABLES[event])


def test_a_worker_that_ends_answers_late() -> None:
    """Of a killed worker nothing but its death counts."""
    for event, table in WORKER_TABLES.items():
        handlers = {handler for (_, worker), handler in table.items() if worker is WorkerState.ENDING}
        expected = set() if isinstance(event, Expired) else {late}
        assert isinstance(event, Exited) or handlers == expected
