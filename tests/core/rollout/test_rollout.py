"""The rollout machine: each rule by example, then every order of events against a world of processes."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.run.tiers import examples

from appliance.core.rollout.effects import (
    Accept,
    Apply,
    Drain,
    Effect,
    GenerationAccepting,
    GenerationCut,
    GenerationDraining,
    GenerationFailed,
    GenerationGone,
    GenerationReady,
    Kill,
    Spawn,
    Unexpected,
    WorkerDied,
    WorkerRefused,
    WorkerStuck,
)
from appliance.core.rollout.events import (
    Abort,
    Accepted,
    Adopt,
    ApplyLive,
    Commit,
    Event,
    Exited,
    Orphan,
    OrphanAnswered,
    Prepare,
    Ready,
    Resume,
    Retire,
    SnapshotApplied,
    SnapshotRefused,
)
from appliance.core.rollout.generations import Generation, TrackedWorker
from appliance.core.rollout.rollout import Rollout
from appliance.core.rollout.states import GenerationState, WorkerId, WorkerState
from appliance.core.rollout.timing import NO_DEADLINE, DrainSettings, Timing

pytestmark = pytest.mark.pure

DRAIN_SETTINGS = DrainSettings(drain=120.0, max_draining=2)
STARTUP = Timing().startup


def ids(generation: int, count: int = 2) -> list[WorkerId]:
    """Return the places of a generation."""
    return [WorkerId(generation, index) for index in range(count)]


def feed(rollout: Rollout, *events: Event, now: float = 0.0) -> list[Effect]:
    """Return the effects of events in a row."""
    return [effect for event in events for effect in rollout.handle(event, now=now)]


def prepared(rollout: Rollout, generation: int, *, now: float = 0.0, count: int = 2) -> None:
    """Bring a generation to ready."""
    feed(rollout, Prepare(generation=generation, snapshot=generation, workers=count), now=now)
    feed(rollout, *map(Ready, ids(generation, count)), now=now)


def rolled_out(rollout: Rollout, generation: int, *, now: float = 0.0, count: int = 2) -> list[Effect]:
    """Bring a generation to accepting."""
    prepared(rollout, generation, now=now, count=count)
    return feed(rollout, Commit(DRAIN_SETTINGS), *map(Accepted, ids(generation, count)), now=now)


def orphan(
    index: int, state: WorkerState = WorkerState.ACCEPTING, *, left: float = 0.0, snapshot: int = 7
) -> Orphan:
    """Return a worker that outlived its master."""
    return Orphan(index=index, snapshot=snapshot, state=state, drain_within=left)


def drains(index: int, left: float) -> Orphan:
    """Return an orphan that drains for so many seconds."""
    return orphan(index, WorkerState.DRAINING, left=left)


def adopted(rollout: Rollout, *orphans: Orphan, workers: int = 2, now: float = 0.0) -> list[Effect]:
    """Let a rollout take generation 4 over."""
    return feed(rollout, Adopt(generation=4, workers=workers, orphans=orphans), now=now)


@pytest.fixture
def rollout() -> Rollout:
    """Return a machine that has seen nothing."""
    return Rollout(drain_settings=DRAIN_SETTINGS)


def test_prepare_starts_every_worker(rollout: Rollout) -> None:
    """A generation starts with all its workers and a deadline for them to be ready."""
    effects = feed(rollout, Prepare(generation=1, snapshot=7, workers=2), now=10.0)
    assert effects == [Spawn(worker=each, snapshot=7, workers=2) for each in ids(1)]
    assert rollout.deadline == 10.0 + STARTUP


def test_ready_when_all_are(rollout: Rollout) -> None:
    """A generation is ready with its last worker, and nobody accepts before the commit."""
    first, second = ids(1)
    feed(rollout, Prepare(generation=1, snapshot=1, workers=2))
    assert feed(rollout, Ready(first)) == []
    assert feed(rollout, Ready(second)) == [GenerationReady(1)]
    assert rollout.deadline is None
    assert feed(rollout, Ready(second)) == [Unexpected(event="Ready", state="ready/ready", worker=second)]


def test_commit_then_accepting(rollout: Rollout) -> None:
    """Commit tells every worker to accept; the generation accepts when all have said so."""
    first, second = ids(1)
    prepared(rollout, 1)
    assert feed(rollout, Commit(DRAIN_SETTINGS)) == [Accept(first), Accept(second)]
    assert feed(rollout, Accepted(first)) == []
    assert rollout.accepting is None
    assert rollout.serving == [first, second]
    assert feed(rollout, Accepted(second)) == [GenerationAccepting(1)]
    assert rollout.accepting is rollout.generations[1]


def test_old_drains_after_last_acknowledgement(rollout: Rollout) -> None:
    """The old generation drains when the last worker of the new one has said that it accepts, not before."""
    rolled_out(rollout, 1)
    prepared(rollout, 2)
    first, second = ids(2)
    assert feed(rollout, Commit(DRAIN_SETTINGS), Accepted(first)) == [Accept(first), Accept(second)]
    assert feed(rollout, Accepted(second), now=5.0) == [
        GenerationAccepting(2),
        GenerationDraining(1, 120.0),
        Drain(WorkerId(1, 0), 120.0),
        Drain(WorkerId(1, 1), 120.0),
    ]
    assert rollout.generations[1].drain_deadline == 125.0


def test_drained_generation_is_gone(rollout: Rollout) -> None:
    """A draining generation is forgotten with its last worker."""
    rolled_out(rollout, 1)
    rolled_out(rollout, 2)
    first, second = ids(1)
    assert feed(rollout, Exited(first, "exited 0")) == []
    assert feed(rollout, Exited(second, "exited 0")) == [GenerationGone(1)]


def test_drain_deadline_is_enforced(rollout: Rollout) -> None:
    """A worker that is still there a grace after its drain deadline is killed, once."""
    rolled_out(rollout, 1, count=1)
    rolled_out(rollout, 2, count=1)
    worker = WorkerId(1, 0)
    assert rollout.deadline == 125.0
    assert rollout.tick(now=124.9) == []
    assert rollout.tick(now=125.0) == [WorkerStuck(worker, WorkerState.DRAINING), Kill(worker)]
    assert rollout.deadline is None
    assert feed(rollout, Exited(worker, "killed")) == [GenerationGone(1)]


def test_crash_before_ready_fails_the_generation(rollout: Rollout) -> None:
    """A worker that dies before it is ready ends its generation; the accepting one is not touched."""
    rolled_out(rollout, 1)
    feed(rollout, Prepare(generation=2, snapshot=2, workers=2), Ready(WorkerId(2, 1)))
    assert feed(rollout, Exited(WorkerId(2, 0), "exited 1")) == [
        Kill(WorkerId(2, 1)),
        GenerationFailed(2, "worker 0 exited 1"),
    ]
    assert list(rollout.generations) == [1]
    assert feed(rollout, Exited(WorkerId(2, 1), "killed")) == []


def test_startup_timeout_fails_the_generation(rollout: Rollout) -> None:
    """Workers that are not ready in time end their generation, with one reason."""
    feed(rollout, Prepare(generation=1, snapshot=1, workers=2))
    assert rollout.tick(now=STARTUP) == [
        Kill(WorkerId(1, 0)),
        Kill(WorkerId(1, 1)),
        GenerationFailed(1, "worker 0 was not ready within 90 s"),
    ]
    assert rollout.generations == {}


def test_crash_between_ready_and_commit(rollout: Rollout) -> None:
    """A worker that dies between ready and commit is replaced, and the old one drains only after that."""
    rolled_out(rollout, 1)
    prepared(rollout, 2)
    first, second = ids(2)
    assert feed(rollout, Exited(first, "killed by SIGKILL")) == [
        WorkerDied(first, "killed by SIGKILL", 0.0),
        Spawn(worker=first, snapshot=2, workers=2),
    ]
    assert feed(rollout, Commit(DRAIN_SETTINGS), Accepted(second)) == [Accept(second)]
    assert rollout.generations[1].state is GenerationState.ACCEPTING
    assert feed(rollout, Ready(first)) == [Accept(first)]
    assert GenerationDraining(1, 120.0) in feed(rollout, Accepted(first))


def test_replacement_is_ready_before_the_commit(rollout: Rollout) -> None:
    """A replacement that is ready before the commit waits for it like the others."""
    prepared(rollout, 1)
    first = WorkerId(1, 0)
    feed(rollout, Exited(first, "gone"))
    assert feed(rollout, Ready(first)) == []
    assert feed(rollout, Commit(DRAIN_SETTINGS)) == [Accept(each) for each in ids(1)]


def test_crash_during_commit(rollout: Rollout) -> None:
    """A worker that dies after it was told to accept is replaced; the old generation goes on until then."""
    rolled_out(rollout, 1)
    prepared(rollout, 2)
    first, second = ids(2)
    feed(rollout, Commit(DRAIN_SETTINGS), Accepted(first), Exited(first, "gone"))
    assert feed(rollout, Accepted(second)) == []
    assert feed(rollout, Ready(first)) == [Accept(first)]
    assert GenerationDraining(1, 120.0) in feed(rollout, Accepted(first))


def test_accepting_crash_while_preparing(rollout: Rollout) -> None:
    """The accepting generation's dead worker is replaced while another generation prepares."""
    rolled_out(rollout, 1)
    feed(rollout, Prepare(generation=2, snapshot=2, workers=2))
    worker = WorkerId(1, 0)
    assert feed(rollout, Exited(worker, "gone"))[1:] == [Spawn(worker=worker, snapshot=1, workers=2)]
    assert feed(rollout, Ready(worker)) == [Accept(worker)]
    assert feed(rollout, Accepted(worker)) == []


def test_stuck_accept(rollout: Rollout) -> None:
    """A worker that does not say in time that it accepts is killed, and replaced when it is gone."""
    rolled_out(rollout, 1, count=1)
    prepared(rollout, 2, count=1)
    worker = WorkerId(2, 0)
    feed(rollout, Commit(DRAIN_SETTINGS), now=0.0)
    assert rollout.tick(now=15.0) == [WorkerStuck(worker, WorkerState.OPENING), Kill(worker)]
    assert feed(rollout, Accepted(worker)) == []
    assert Spawn(worker=worker, snapshot=2, workers=1) in feed(rollout, Exited(worker, "killed"), now=15.0)
    assert rollout.generations[1].state is GenerationState.ACCEPTING


def test_backoff_doubles_to_its_limit_and_is_reset(rollout: Rollout) -> None:
    """Replacements wait 0, 100 ms, 200 ms ... 5 s; a worker that accepted for long starts over."""
    rolled_out(rollout, 1, count=1)
    worker, now, delays = WorkerId(1, 0), 0.0, []
    for _ in range(9):
        died = feed(rollout, Exited(worker, "gone"), now=now)[0]
        delays.append(died.delay)
        now += died.delay
        rollout.tick(now=now)
        feed(rollout, Ready(worker), Accepted(worker), now=now)
    assert delays == [0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert feed(rollout, Exited(worker, "gone"), now=now + 10.0)[0].delay == 0.0


def test_backoff_is_a_deadline(rollout: Rollout) -> None:
    """A worker that waits to be started again is started at its deadline, and its death is not told twice."""
    rolled_out(rollout, 1, count=1)
    worker = WorkerId(1, 0)
    feed(rollout, Exited(worker, "gone"), Exited(worker, "gone"), now=1.0)
    assert rollout.deadline == 1.1
    assert feed(rollout, Exited(worker, "gone"), now=1.0) == [
        Unexpected(event="Exited", state="accepting/waiting", worker=worker)
    ]
    assert rollout.tick(now=1.1) == [Spawn(worker=worker, snapshot=1, workers=1)]


def test_startup_timeout_of_a_replacement(rollout: Rollout) -> None:
    """A replacement that is never ready is killed and tried again; its generation stays."""
    rolled_out(rollout, 1, count=1)
    worker = WorkerId(1, 0)
    feed(rollout, Exited(worker, "gone"), now=0.0)
    assert rollout.tick(now=STARTUP) == [WorkerStuck(worker, WorkerState.STARTING), Kill(worker)]
    assert feed(rollout, Exited(worker, "killed"), now=STARTUP) == [WorkerDied(worker, "killed", 0.1)]


def test_abort(rollout: Rollout) -> None:
    """Abort kills the generation that was not committed, and repeats without harm."""
    rolled_out(rollout, 1)
    prepared(rollout, 2)
    assert feed(rollout, Abort()) == [Kill(each) for each in ids(2)]
    assert feed(rollout, Abort(), Commit(DRAIN_SETTINGS)) == [Unexpected(event="Commit", state="none")]
    assert list(rollout.generations) == [1]


def test_abort_does_not_touch_the_committed(rollout: Rollout) -> None:
    """Abort and a further prepare leave a generation alone that is on its way to accepting."""
    rolled_out(rollout, 1)
    prepared(rollout, 2)
    feed(rollout, Commit(DRAIN_SETTINGS))
    assert feed(rollout, Abort()) == []
    prepared(rollout, 3)
    feed(rollout, Abort())
    assert list(rollout.generations) == [1, 2]


def test_prepare_gives_up_the_pending(rollout: Rollout) -> None:
    """Preparing another generation kills the one that was not committed, waiting workers left out."""
    prepared(rollout, 1)
    worker = WorkerId(1, 0)
    feed(rollout, Exited(worker, "gone"), Exited(worker, "gone"))
    effects = feed(rollout, Prepare(generation=2, snapshot=2, workers=1))
    assert effects == [Kill(WorkerId(1, 1)), Spawn(worker=WorkerId(2, 0), snapshot=2, workers=1)]


def test_commit_needs_a_ready_generation(rollout: Rollout) -> None:
    """Commit of a generation that is still starting does nothing, and is reported."""
    feed(rollout, Prepare(generation=1, snapshot=1, workers=1))
    assert feed(rollout, Commit(DRAIN_SETTINGS)) == [Unexpected(event="Commit", state="starting")]
    assert rollout.generations[1].state is GenerationState.STARTING


def test_newer_overtakes_one_that_opens(rollout: Rollout) -> None:
    """When a newer generation accepts first, all older ones drain, whatever their workers are doing."""
    rolled_out(rollout, 1, count=1)
    prepared(rollout, 2, count=5)
    feed(rollout, Commit(DRAIN_SETTINGS), now=0.0)
    waiting, starting, accepting, stuck, opening = ids(2, 5)
    feed(rollout, Exited(waiting, "gone"), Exited(waiting, "gone"), Exited(starting, "gone"))
    feed(rollout, Accepted(accepting))
    generation = rollout.generations[2]
    generation.workers[stuck.index].state = WorkerState.ENDING
    effects = rolled_out(rollout, 3, count=1)
    assert effects[1:] == [
        GenerationAccepting(3),
        GenerationDraining(1, 120.0),
        Drain(WorkerId(1, 0), 120.0),
        GenerationDraining(2, 120.0),
        Kill(starting),
        Drain(accepting, 120.0),
        Drain(opening, 120.0),
    ]
    assert waiting.index not in generation.workers


def test_generation_without_processes_is_gone_when_it_drains(rollout: Rollout) -> None:
    """A generation whose only worker waits to be started again has nothing to drain."""
    rolled_out(rollout, 1, count=1)
    feed(rollout, Exited(WorkerId(1, 0), "gone"), Exited(WorkerId(1, 0), "gone"))
    effects = rolled_out(rollout, 2, count=1)
    assert effects[-2:] == [GenerationDraining(1, 120.0), GenerationGone(1)]


def test_live_change(rollout: Rollout) -> None:
    """A live change goes to accepting workers; one that is starting gets it before it accepts."""
    rolled_out(rollout, 1)
    rolled_out(rollout, 2)
    first, second = ids(2)
    feed(rollout, Exited(first, "gone"))
    assert feed(rollout, ApplyLive(snapshot=9, drain_settings=DRAIN_SETTINGS)) == [Apply(second, 9)]
    assert feed(rollout, Ready(first)) == [Apply(first, 9), Accept(first)]
    assert feed(rollout, Exited(second, "gone"))[-1] == Spawn(worker=second, snapshot=9, workers=2)


def test_oldest_draining_is_cut(rollout: Rollout) -> None:
    """More draining generations than allowed: the oldest ends at once, and is killed after the grace."""
    for number in (1, 2, 3):
        rolled_out(rollout, number, count=1)
    effects = rolled_out(rollout, 4, count=1, now=50.0)
    assert effects[-2:] == [GenerationCut(1), Drain(WorkerId(1, 0), 0.0)]
    assert rollout.tick(now=55.0) == [
        WorkerStuck(WorkerId(1, 0), WorkerState.DRAINING),
        Kill(WorkerId(1, 0)),
    ]


def test_fewer_draining_by_a_live_change(rollout: Rollout) -> None:
    """A live change of the limit cuts what is too many, and not again what was cut."""
    for number in (1, 2, 3):
        rolled_out(rollout, number, count=1)
    effects = feed(rollout, ApplyLive(snapshot=3, drain_settings=DrainSettings(drain=1.0, max_draining=1)))
    assert effects == [Apply(WorkerId(3, 0), 3), GenerationCut(1), Drain(WorkerId(1, 0), 0.0)]
    assert GenerationCut(1) not in feed(
        rollout, ApplyLive(snapshot=3, drain_settings=DrainSettings(drain=1.0, max_draining=0))
    )


def test_retire(rollout: Rollout) -> None:
    """Retire kills what is pending and drains everything else."""
    rolled_out(rollout, 1, count=1)
    prepared(rollout, 2, count=1)
    effects = feed(rollout, Retire(within=3.0))
    assert effects == [Kill(WorkerId(2, 0)), GenerationDraining(1, 3.0), Drain(WorkerId(1, 0), 3.0)]
    assert rollout.accepting is None


def test_retire_again(rollout: Rollout) -> None:
    """After a soft stop it sets a deadline; one that is nearer already stays."""
    rolled_out(rollout, 1, count=1)
    feed(rollout, Retire(within=NO_DEADLINE))
    assert rollout.generations[1].drain_deadline == NO_DEADLINE
    effects = feed(rollout, Retire(within=3.0), now=50.0)
    assert effects == [GenerationDraining(1, 3.0), Drain(WorkerId(1, 0), 3.0)]
    assert feed(rollout, Retire(within=9.0), now=51.0) == []


def test_adopted_go_on(rollout: Rollout) -> None:
    """Adopted workers accept until a generation of ours does, and are replaced when they die before."""
    assert adopted(rollout, orphan(0), orphan(1)) == []
    assert rollout.accepting is rollout.generations[4]
    assert feed(rollout, Exited(WorkerId(4, 0), "gone"), now=1.0) == [
        WorkerDied(WorkerId(4, 0), "gone", 0.0),
        Spawn(worker=WorkerId(4, 0), snapshot=7, workers=2),
    ]
    assert GenerationDraining(4, 120.0) in rolled_out(rollout, 5, now=1.0)


def test_adopted_drains_keep_their_deadline(rollout: Rollout) -> None:
    """An adopted draining generation ends when its first master said."""
    adopted(rollout, drains(0, 3.0), drains(1, 7.0), now=100.0)
    assert rollout.generations[4].state is GenerationState.DRAINING
    assert rollout.generations[4].drain_deadline == 107.0
    assert rollout.deadline == 108.0
    assert rollout.accepting is None


def test_adopted_half_drained(rollout: Rollout) -> None:
    """Of an adopted generation that half drains, the draining half is not replaced nor given more time."""
    adopted(rollout, orphan(0), drains(1, 3.0), workers=3)
    effects = rolled_out(rollout, 5)
    assert effects[-2:] == [Drain(WorkerId(4, 0), 120.0), Drain(WorkerId(4, 1), 3.0)]
    rollout = Rollout(drain_settings=DRAIN_SETTINGS)
    adopted(rollout, orphan(0), drains(1, 3.0), workers=3)
    assert feed(rollout, Exited(WorkerId(4, 1), "exited 0")) == []
    assert list(rollout.generations[4].workers) == [0]


def test_nobody_to_adopt(rollout: Rollout) -> None:
    """A generation of no living workers is forgotten at once."""
    assert adopted(rollout) == [GenerationGone(4)]


def test_adopted_that_nobody_committed(rollout: Rollout) -> None:
    """Workers that are ready, of a generation of which nobody accepts, end."""
    assert adopted(rollout, orphan(0, WorkerState.READY)) == [Kill(WorkerId(4, 0))]
    assert rollout.accepting is None
    assert feed(rollout, Exited(WorkerId(4, 0), "killed")) == [GenerationGone(4)]


def test_nothing_to_resume(rollout: Rollout) -> None:
    """Where nobody accepts nothing goes on."""
    assert feed(rollout, Resume(snapshot=7, drain_settings=DRAIN_SETTINGS)) == []


def test_resumed_as_they_are(rollout: Rollout) -> None:
    """Workers that obey what is accepted go on, and nothing is asked of them."""
    adopted(rollout, orphan(0), orphan(1))
    assert feed(rollout, Resume(snapshot=7, drain_settings=DrainSettings(drain=3.0, max_draining=1))) == []
    assert rollout.drain_settings == DrainSettings(drain=3.0, max_draining=1)
    assert rollout.deadline is None


def test_resumed_after_a_live_change(rollout: Rollout) -> None:
    """A change that only some workers have heard of is told to the others; drains are left alone."""
    adopted(rollout, orphan(0), orphan(1, snapshot=8), drains(2, 9.0))
    assert feed(rollout, Resume(snapshot=8, drain_settings=DRAIN_SETTINGS)) == [Apply(WorkerId(4, 0), 8)]
    assert [each.id for each in rollout.not_applied] == [WorkerId(4, 0)]
    feed(rollout, SnapshotApplied(WorkerId(4, 0), 8))
    assert rollout.not_applied == []


def test_resumed_with_empty_places(rollout: Rollout) -> None:
    """A worker that died while there was no master is replaced, beside one that still drains in its place."""
    adopted(rollout, drains(0, 9.0), orphan(2), workers=3)
    assert feed(rollout, Resume(snapshot=7, drain_settings=DRAIN_SETTINGS)) == [
        Spawn(worker=WorkerId(4, 3), snapshot=7, workers=3),
        Spawn(worker=WorkerId(4, 1), snapshot=7, workers=3),
    ]
    assert rollout.accepting is rollout.generations[4]


def test_resumed_with_ready_workers(rollout: Rollout) -> None:
    """A commit in whose middle the master died is completed: who waits accepts, with what is accepted now."""
    adopted(rollout, orphan(0), orphan(1, WorkerState.READY, snapshot=6))
    assert feed(rollout, Resume(snapshot=7, drain_settings=DRAIN_SETTINGS)) == [
        Apply(WorkerId(4, 1), 7),
        Accept(WorkerId(4, 1)),
    ]


@pytest.mark.parametrize("complete", [True, False])
def test_resumed_with_an_older_generation(rollout: Rollout, *, complete: bool) -> None:
    """An older generation that accepts too drains when all of the newer one do, and not before."""
    feed(rollout, Adopt(generation=3, workers=1, orphans=(orphan(0, snapshot=6),)))
    adopted(rollout, *[orphan(index) for index in range(1 + complete)])
    effects = feed(rollout, Resume(snapshot=7, drain_settings=DRAIN_SETTINGS), now=1.0)
    drain = [GenerationDraining(3, 120.0), Drain(WorkerId(3, 0), 120.0)]
    if complete:
        assert effects == drain
        return
    assert effects == [Spawn(worker=WorkerId(4, 1), snapshot=7, workers=2)]
    assert rollout.accepting is rollout.generations[3]
    assert feed(rollout, Ready(WorkerId(4, 1))) == [Accept(WorkerId(4, 1))]
    assert feed(rollout, Accepted(WorkerId(4, 1))) == [GenerationAccepting(4), *drain]


def silent(state: WorkerState, snapshot: int = 7) -> Orphan:
    """Return an orphan that does not answer."""
    return Orphan(index=1, snapshot=snapshot, state=state, silent=True)


@pytest.mark.parametrize("state", [WorkerState.ACCEPTING, WorkerState.DRAINING])
def test_a_silent_worker_has_a_last_moment(rollout: Rollout, state: WorkerState) -> None:
    """One that does not answer holds its place for a while and is ended then, and replaced if it accepted."""
    adopted(rollout, orphan(0), silent(state))
    feed(rollout, Resume(snapshot=7, drain_settings=DRAIN_SETTINGS))
    rollout.tick(now=29.9)
    assert Kill(WorkerId(4, 1)) in rollout.tick(now=30.0)


@pytest.mark.parametrize(
    ("before", "now", "effects", "after"),
    [
        (WorkerState.ACCEPTING, WorkerState.ACCEPTING, [], WorkerState.ACCEPTING),
        (WorkerState.ACCEPTING, WorkerState.DRAINING, [], WorkerState.DRAINING),
        (WorkerState.DRAINING, WorkerState.ACCEPTING, [], WorkerState.DRAINING),
        (WorkerState.ACCEPTING, WorkerState.READY, [Accept(WorkerId(4, 1))], WorkerState.OPENING),
    ],
)
def test_a_silent_worker_answers(
    rollout: Rollout, before: WorkerState, now: WorkerState, effects: list[Effect], after: WorkerState
) -> None:
    """What it says of itself counts, but for an order to drain that it has not heard yet."""
    adopted(rollout, orphan(0), silent(before))
    assert feed(rollout, OrphanAnswered(generation=4, orphan=orphan(1, now, left=9.0))) == effects
    worker = rollout.worker(WorkerId(4, 1))
    assert worker is not None
    assert worker.state is after


def test_a_silent_worker_answers_late(rollout: Rollout) -> None:
    """It is told of a live change that came meanwhile; one that nobody knows any more is nobody's."""
    adopted(rollout, orphan(0), silent(WorkerState.ACCEPTING))
    feed(rollout, Resume(snapshot=8, drain_settings=DRAIN_SETTINGS))
    answered = OrphanAnswered(generation=4, orphan=orphan(1))
    assert feed(rollout, answered) == [Apply(WorkerId(4, 1), 8)]
    assert rollout.deadline is None
    for generation, index in ((9, 1), (4, 2)):
        stranger = WorkerId(generation, index)
        assert feed(rollout, OrphanAnswered(generation=generation, orphan=orphan(index))) == [
            Unexpected(event="OrphanAnswered", state="forgotten", worker=stranger)
        ]


def test_a_refusal_is_repeated(rollout: Rollout) -> None:
    """A worker that refuses a live change is told again, later each time; one that obeys at last is not."""
    rolled_out(rollout, 1, count=1)
    worker = WorkerId(1, 0)
    feed(rollout, ApplyLive(snapshot=2, drain_settings=DRAIN_SETTINGS))
    assert feed(rollout, SnapshotRefused(worker, 2, "no room"), now=1.0) == [
        WorkerRefused(worker=worker, reason="no room", delay=0.1)
    ]
    assert [each.refusal for each in rollout.not_applied] == ["no room"]
    assert rollout.deadline == 1.1
    assert rollout.tick(now=1.1) == [Apply(worker, 2)]
    assert rollout.deadline is None
    assert feed(rollout, SnapshotApplied(worker, 2), SnapshotRefused(worker, 1, "late")) == []
    assert rollout.not_applied == []


def test_a_worker_that_never_obeys_is_replaced(rollout: Rollout) -> None:
    """Another one starts beside it and with its share; it drains when that accepts, and others go on."""
    rolled_out(rollout, 1)
    worker, successor = WorkerId(1, 1), WorkerId(1, 3)
    feed(rollout, ApplyLive(snapshot=2, drain_settings=DRAIN_SETTINGS), SnapshotApplied(WorkerId(1, 0), 2))
    effects = feed(rollout, *[SnapshotRefused(worker, 2, "never")] * 4, now=1.0)
    assert effects[2:] == [
        WorkerRefused(worker=worker, reason="never", delay=None),
        Spawn(worker=successor, snapshot=2, workers=2),
        WorkerRefused(worker=worker, reason="never", delay=None),
    ]
    assert feed(rollout, Ready(successor)) == [Accept(successor)]
    assert feed(rollout, Accepted(successor), now=2.0) == [Drain(worker, 120.0)]
    assert rollout.not_applied == []
    assert feed(rollout, SnapshotRefused(worker, 2, "still")) == []
    assert feed(rollout, Exited(worker, "exited 0")) == []
    assert rollout.accepting is rollout.generations[1]


def test_a_starting_worker_that_refuses(rollout: Rollout) -> None:
    """It has nothing to lose yet: it ends, and another starts with what is accepted."""
    prepared(rollout, 1, count=1)
    worker = WorkerId(1, 0)
    feed(rollout, Commit(DRAIN_SETTINGS), ApplyLive(snapshot=2, drain_settings=DRAIN_SETTINGS))
    assert feed(rollout, SnapshotRefused(worker, 2, "no")) == [
        WorkerRefused(worker=worker, reason="no", delay=None),
        Kill(worker),
    ]


def test_fewer_may_drain_from_a_commit_on(rollout: Rollout) -> None:
    """A commit that allows fewer draining generations cuts the surplus at once."""
    adopted(rollout, drains(0, 9.0), workers=1)
    prepared(rollout, 5)
    effects = feed(rollout, Commit(DrainSettings(drain=120.0, max_draining=0)))
    assert effects == [
        Accept(WorkerId(5, 0)),
        Accept(WorkerId(5, 1)),
        GenerationCut(4),
        Drain(WorkerId(4, 0), 0.0),
    ]


def test_strangers_are_ignored(rollout: Rollout) -> None:
    """What workers say that are not ours, or that is out of place, changes nothing.

    What may come from a generation that was aborted is expected, the rest is reported.
    """
    stranger = WorkerId(9, 9)
    assert feed(rollout, Ready(stranger), Exited(stranger, "gone")) == []
    strange = (Accepted(stranger), SnapshotApplied(stranger, 1), SnapshotRefused(stranger, 1, "no"))
    assert feed(rollout, *strange) == [
        Unexpected(event=type(each).__name__, state="forgotten", worker=stranger) for each in strange
    ]
    assert rollout.generations == {}
    prepared(rollout, 1)
    first = WorkerId(1, 0)
    assert feed(rollout, Accepted(first)) == [Unexpected(event="Accepted", state="ready/ready", worker=first)]


def test_late_answers_are_expected(rollout: Rollout) -> None:
    """An order that was overtaken by a drain or a kill is answered all the same, which changes nothing."""
    rolled_out(rollout, 1, count=1)
    prepared(rollout, 2, count=1)
    opening = WorkerId(2, 0)
    feed(rollout, Commit(DRAIN_SETTINGS), ApplyLive(snapshot=3, drain_settings=DRAIN_SETTINGS))
    feed(rollout, Retire(within=9.0))
    answers = (SnapshotApplied(opening, 3), SnapshotRefused(opening, 3, "no"), Accepted(opening))
    assert feed(rollout, *answers) == []
    rollout.tick(now=14.0)
    assert rollout.generations[2].workers[0].state is WorkerState.ENDING
    assert feed(rollout, *answers, OrphanAnswered(generation=2, orphan=orphan(0))) == []


@dataclass
class Process:
    """What a worker's process would be doing."""

    accepting: bool = False
    told: bool = False
    drain_end: float | None = None
    killed: bool = False


@dataclass
class World:
    """Processes as the effects make them; it remembers who accepted when a generation was sent away."""

    processes: dict[WorkerId, Process] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)

    def wholly_accepting(self, generation: int) -> bool:
        """Say whether every worker of the generation accepts."""
        members = [p for w, p in self.processes.items() if w.generation == generation]
        return len(members) == self.sizes[generation] and all(
            p.accepting and p.drain_end is None and not p.killed for p in members
        )


class AnyOrder(RuleBasedStateMachine):
    """Events in any order that a world of processes allows, and some that it does not."""

    def __init__(self) -> None:
        super().__init__()
        self.rollout = Rollout(drain_settings=DRAIN_SETTINGS, timing=Timing())
        self.world = World()
        self.now = 0.0
        self.number = 0
        self.served = False

    def step(self, event: Event | None) -> None:
        """Feed an event, None for the clock, and perform what comes of it."""
        effects = (
            self.rollout.tick(now=self.now) if event is None else self.rollout.handle(event, now=self.now)
        )
        for effect in effects:
            self.perform(effect)

    def perform(self, effect: Effect) -> None:
        """Do to the world what an effect says, and check that it may be done."""
        processes = self.world.processes
        match effect:
            case Spawn(worker=worker):
                assert worker not in processes, "two processes in one place"
                processes[worker] = Process()
            case Accept(worker):
                assert processes[worker].drain_end is None, "told to accept after it was told to drain"
                processes[worker].told = True
            case Drain(worker, within):
                process, end = processes[worker], self.now + within
                assert process.told, "drains without ever having accepted"
                newer = [n for n in self.world.sizes if n > worker.generation]
                assert any(map(self.world.wholly_accepting, newer)) or process.drain_end is not None
                assert process.drain_end is None or end <= max(process.drain_end, self.now) + 1e-6
                process.drain_end = end
            case Kill(worker):
                process = processes[worker]
                assert not process.killed, "killed twice"
                assert not (process.accepting and process.drain_end is None), "killed while it serves"
                process.killed = True
            case GenerationAccepting(generation):
                assert self.world.wholly_accepting(generation)
                self.served = True
            case Unexpected(event=event):
                assert event in {"Commit", "Ready"}, "an event that the world allows is in no table"
            case _:
                pass

    def pick(self, data: st.DataObject, condition: Callable[[Process], bool]) -> WorkerId | None:
        """Choose one of the processes that fit."""
        found = [w for w, p in self.world.processes.items() if condition(p)]
        return data.draw(st.sampled_from(found)) if found else None

    @initialize(accepting=st.integers(0, 2), draining=st.integers(0, 2))
    def adopt(self, accepting: int, draining: int) -> None:
        """A dead master may have left a generation: wholly accepting, half drained, or none."""
        if not accepting + draining:
            return
        self.number += 1
        within = [None] * accepting + [20.0] * draining
        for index, each in enumerate(within):
            end = None if each is None else self.now + each
            process = Process(told=True, accepting=end is None, drain_end=end)
            self.world.processes[WorkerId(self.number, index)] = process
        self.world.sizes[self.number] = len(within)
        orphans = tuple(
            orphan(index) if each is None else drains(index, each) for index, each in enumerate(within)
        )
        self.step(Adopt(generation=self.number, workers=len(within), orphans=orphans))
        self.served = accepting > 0

    @rule(workers=st.integers(1, 3))
    def prepare(self, workers: int) -> None:
        """A reload begins."""
        self.number += 1
        self.world.sizes[self.number] = workers
        self.step(Prepare(generation=self.number, snapshot=self.number, workers=workers))

    @rule(data=st.data())
    def ready(self, data: st.DataObject) -> None:
        """One worker is ready."""
        worker = self.pick(data, lambda p: not p.told and not p.killed)
        if worker:
            self.step(Ready(worker))

    @rule()
    def all_ready(self) -> None:
        """All workers that start are ready."""
        for worker in [w for w, p in self.world.processes.items() if not p.told and not p.killed]:
            self.step(Ready(worker))

    @rule(data=st.data())
    def accepted(self, data: st.DataObject) -> None:
        """One worker accepts."""
        worker = self.pick(data, lambda p: p.told and not p.accepting and not p.killed)
        if worker:
            self.world.processes[worker].accepting = True
            self.step(Accepted(worker))

    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        """Any process dies."""
        worker = self.pick(data, lambda _: True)
        if worker:
            del self.world.processes[worker]
            self.step(Exited(worker, "gone"))

    @rule()
    def killed_are_gone(self) -> None:
        """The killed ones are reaped."""
        for worker in [w for w, p in self.world.processes.items() if p.killed]:
            del self.world.processes[worker]
            self.step(Exited(worker, "killed"))

    @rule(limit=st.integers(0, 3))
    def commit(self, limit: int) -> None:
        """A reload is made real."""
        self.step(Commit(DrainSettings(drain=20.0, max_draining=limit)))

    @rule()
    def abort(self) -> None:
        """A reload is given up."""
        self.step(Abort())

    @rule()
    def resume(self) -> None:
        """What was adopted goes on as the accepted configuration's."""
        if self.rollout.pending is None:
            self.step(Resume(snapshot=self.number, drain_settings=DrainSettings(drain=20.0, max_draining=3)))

    @rule(data=st.data(), refuses=st.booleans())
    def answer(self, data: st.DataObject, *, refuses: bool) -> None:
        """A worker answers to a live change."""
        if behind := self.rollout.not_applied:
            worker = data.draw(st.sampled_from(behind))
            if worker.state is WorkerState.OPENING:
                return
            if refuses and worker.refusals < 2:  # the third is an example of its own above
                self.step(SnapshotRefused(worker.id, worker.snapshot, "no"))
            else:
                self.step(SnapshotApplied(worker.id, worker.snapshot))

    @rule(limit=st.integers(0, 3))
    def live(self, limit: int) -> None:
        """A change without a generation."""
        self.step(
            ApplyLive(snapshot=self.number, drain_settings=DrainSettings(drain=20.0, max_draining=limit))
        )

    @rule(seconds=st.sampled_from([0.05, 0.3, 4.0, 31.0]))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.now += seconds
        self.step(None)

    @precondition(lambda self: self.rollout.deadline is not None)
    @rule()
    def wait_for_the_deadline(self) -> None:
        """Time passes until something is due."""
        self.now = max(self.now, self.rollout.deadline)
        self.step(None)

    @invariant()
    def somebody_accepts(self) -> None:
        """Once a generation accepted, one does: each of its workers accepts, or is being replaced."""
        if self.served:
            assert self.rollout.accepting is not None
            assert any(map(self.serves, self.rollout.generations.values()))

    def serves(self, generation: Generation) -> bool:
        """Say whether a generation does its duty; of an adopted one, a part may drain already."""
        serving = [each for each in generation.workers.values() if each.state is not WorkerState.DRAINING]
        accepts = generation.state is GenerationState.ACCEPTING and bool(serving)
        return accepts and all(map(self.accepts_or_is_replaced, serving))

    def accepts_or_is_replaced(self, worker: TrackedWorker) -> bool:
        """Say whether a worker does its duty, or another comes for it."""
        process = self.world.processes.get(worker.id)
        if process is None:
            return worker.state is WorkerState.WAITING and worker.deadline <= self.now + 5.0
        return (process.accepting and process.drain_end is None) or worker.state in (
            WorkerState.STARTING,
            WorkerState.OPENING,
            WorkerState.ENDING,
        )

    @invariant()
    def draining_is_bounded(self) -> None:
        """No more generations drain than allowed, other than those that were cut."""
        draining = [
            each for each in self.rollout.generations.values() if each.state is GenerationState.DRAINING
        ]
        assert sum(not each.cut for each in draining) <= self.rollout.drain_settings.max_draining

    @invariant()
    def nothing_is_waited_for_in_vain(self) -> None:
        """Every process that is still to do something has a deadline by which it is done, or done with."""
        for generation in self.rollout.generations.values():
            for worker in generation.workers.values():
                timeless = worker.state in (WorkerState.READY, WorkerState.ACCEPTING, WorkerState.ENDING)
                assert timeless == (worker.deadline is None)


AnyOrder.TestCase.settings = settings(max_examples=examples(300), stateful_step_count=60, deadline=None)
test_any_order = pytest.mark.pure(AnyOrder.TestCase)
