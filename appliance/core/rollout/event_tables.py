"""Which event may come in which state, and its handler: the tables of the rollout.

An event that a table lacks for the present state cannot come there, and is reported (`Unexpected`). A late
event, such as the answer of a worker that was killed meanwhile, is in the table; its handler is `late`.

A worker's event is looked up by the states of its generation and of the worker itself; `FORGOTTEN` is a place
that is not kept any more, such as one of an aborted generation. The possible combinations:

    generation   workers
    STARTING     STARTING READY
    READY        WAITING STARTING READY ENDING
    OPENING      WAITING STARTING OPENING ACCEPTING DRAINING ENDING
    ACCEPTING    WAITING STARTING READY OPENING ACCEPTING DRAINING ENDING
    DRAINING     DRAINING ENDING

READY in ACCEPTING is a worker that was taken over before its order to accept.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from appliance.core.rollout.effects import Effect
from appliance.core.rollout.events import (
    Abort,
    Accepted,
    Adopt,
    ApplyLive,
    CommandEvent,
    Commit,
    Exited,
    Expired,
    OrphanAnswered,
    Prepare,
    Ready,
    Resume,
    Retire,
    SnapshotApplied,
    SnapshotRefused,
    WorkerEvent,
)
from appliance.core.rollout.generations import Concerned, Generations
from appliance.core.rollout.handlers import aborting, adopting, draining, live_changes, preparing, replacing
from appliance.core.rollout.states import GenerationState, WorkerState

_WorkerEvent = TypeVar("_WorkerEvent", bound=WorkerEvent)
_Command = TypeVar("_Command", bound=CommandEvent)

WorkerHandler = Callable[[Concerned, _WorkerEvent], list[Effect]]
CommandHandler = Callable[[Generations, _Command, float], list[Effect]]

States = tuple[GenerationState, WorkerState]
"""The states of a worker's generation and of the worker."""

WorkerTable = Mapping[States, WorkerHandler[_WorkerEvent]]
CommandTable = Mapping[GenerationState | None, CommandHandler[_Command]]
"""By the state of the generation that was not committed, or None."""

_G: Final = GenerationState
_W: Final = WorkerState


def late(_at: Concerned, _event: WorkerEvent) -> list[Effect]:
    """Do nothing: the worker has a newer order, and the event that answers it is to come."""
    return []


_LATE_ANSWERS: Final[WorkerTable[WorkerEvent]] = {
    (_G.OPENING, _W.DRAINING): late,
    (_G.ACCEPTING, _W.DRAINING): late,
    (_G.DRAINING, _W.DRAINING): late,
    (_G.OPENING, _W.ENDING): late,
    (_G.ACCEPTING, _W.ENDING): late,
    (_G.DRAINING, _W.ENDING): late,
}
"""Answers to an order, of workers that were ordered to drain or killed since."""

READY: Final[WorkerTable[Ready]] = {
    (_G.STARTING, _W.STARTING): preparing.ready,
    (_G.READY, _W.STARTING): preparing.replacement_ready,
    (_G.OPENING, _W.STARTING): preparing.ready_after_commit,
    (_G.ACCEPTING, _W.STARTING): preparing.ready_after_commit,
    (_G.READY, _W.ENDING): late,
    (_G.OPENING, _W.ENDING): late,
    (_G.ACCEPTING, _W.ENDING): late,
    (_G.DRAINING, _W.ENDING): late,
}

ACCEPTED: Final[WorkerTable[Accepted]] = {
    (_G.OPENING, _W.OPENING): preparing.accepted,
    (_G.ACCEPTING, _W.OPENING): preparing.accepted,
    # A silent orphan is ordered to accept, and once more when it answers: it executes both orders.
    (_G.OPENING, _W.ACCEPTING): late,
    (_G.ACCEPTING, _W.ACCEPTING): late,
    **_LATE_ANSWERS,
}

EXITED: Final[WorkerTable[Exited]] = {
    (_G.STARTING, _W.STARTING): aborting.exited_before_ready,
    (_G.STARTING, _W.READY): aborting.exited_before_ready,
    (_G.READY, _W.STARTING): replacing.replace,
    (_G.READY, _W.READY): replacing.replace,
    (_G.READY, _W.ENDING): replacing.replace,
    (_G.OPENING, _W.STARTING): replacing.replace,
    (_G.OPENING, _W.OPENING): replacing.replace,
    (_G.OPENING, _W.ACCEPTING): replacing.replace,
    (_G.OPENING, _W.DRAINING): draining.exited_while_draining,
    (_G.OPENING, _W.ENDING): replacing.replace,
    (_G.ACCEPTING, _W.STARTING): replacing.replace,
    (_G.ACCEPTING, _W.READY): replacing.replace,
    (_G.ACCEPTING, _W.OPENING): replacing.replace,
    (_G.ACCEPTING, _W.ACCEPTING): replacing.replace,
    (_G.ACCEPTING, _W.DRAINING): draining.exited_while_draining,
    (_G.ACCEPTING, _W.ENDING): replacing.replace,
    (_G.DRAINING, _W.DRAINING): draining.exited_while_draining,
    (_G.DRAINING, _W.ENDING): draining.exited_while_draining,
}

APPLIED: Final[WorkerTable[SnapshotApplied]] = {
    (_G.OPENING, _W.OPENING): live_changes.applied,
    (_G.OPENING, _W.ACCEPTING): live_changes.applied,
    (_G.ACCEPTING, _W.OPENING): live_changes.applied,
    (_G.ACCEPTING, _W.ACCEPTING): live_changes.applied,
    **_LATE_ANSWERS,
}

REFUSED: Final[WorkerTable[SnapshotRefused]] = {
    (_G.OPENING, _W.OPENING): live_changes.refused_before_accepting,
    (_G.OPENING, _W.ACCEPTING): live_changes.refused,
    (_G.ACCEPTING, _W.OPENING): live_changes.refused_before_accepting,
    (_G.ACCEPTING, _W.ACCEPTING): live_changes.refused,
    **_LATE_ANSWERS,
}

ANSWERED: Final[WorkerTable[OrphanAnswered]] = {
    (_G.OPENING, _W.OPENING): adopting.answered,
    (_G.OPENING, _W.ACCEPTING): adopting.answered,
    (_G.OPENING, _W.DRAINING): adopting.answered,
    (_G.ACCEPTING, _W.READY): adopting.answered,
    (_G.ACCEPTING, _W.OPENING): adopting.answered,
    (_G.ACCEPTING, _W.ACCEPTING): adopting.answered,
    (_G.ACCEPTING, _W.DRAINING): adopting.answered,
    (_G.DRAINING, _W.DRAINING): adopting.answered,
    (_G.OPENING, _W.ENDING): late,
    (_G.ACCEPTING, _W.ENDING): late,
    (_G.DRAINING, _W.ENDING): late,
}

EXPIRED: Final[WorkerTable[Expired]] = {
    (_G.STARTING, _W.STARTING): aborting.late_before_ready,
    (_G.READY, _W.WAITING): replacing.start_again,
    (_G.READY, _W.STARTING): replacing.kill_stuck,
    (_G.OPENING, _W.WAITING): replacing.start_again,
    (_G.OPENING, _W.STARTING): replacing.kill_stuck,
    (_G.OPENING, _W.OPENING): replacing.kill_stuck,
    (_G.OPENING, _W.ACCEPTING): replacing.kill_stuck,  # an orphan that stays silent, as are the next two
    (_G.ACCEPTING, _W.READY): replacing.kill_stuck,
    (_G.ACCEPTING, _W.ACCEPTING): replacing.kill_stuck,
    (_G.OPENING, _W.DRAINING): replacing.kill_stuck,
    (_G.ACCEPTING, _W.WAITING): replacing.start_again,
    (_G.ACCEPTING, _W.STARTING): replacing.kill_stuck,
    (_G.ACCEPTING, _W.OPENING): replacing.kill_stuck,
    (_G.ACCEPTING, _W.DRAINING): replacing.kill_stuck,
    (_G.DRAINING, _W.DRAINING): replacing.kill_stuck,
}

FORGOTTEN: Final[frozenset[type[WorkerEvent]]] = frozenset({Ready, Exited, Expired})
"""What may still come from workers of an aborted generation: they are about to end."""

_ANYTIME: Final = (None, _G.STARTING, _G.READY)

PREPARE: Final[CommandTable[Prepare]] = dict.fromkeys(_ANYTIME, preparing.prepare)
COMMIT: Final[CommandTable[Commit]] = {_G.READY: preparing.commit}
# None for a live change that is given up, or the second of two aborts.
ABORT: Final[CommandTable[Abort]] = dict.fromkeys(_ANYTIME, aborting.abort_by_command)
APPLY_LIVE: Final[CommandTable[ApplyLive]] = dict.fromkeys(_ANYTIME, live_changes.apply_live)
ADOPT: Final[CommandTable[Adopt]] = {None: adopting.adopt}
RESUME: Final[CommandTable[Resume]] = dict.fromkeys(_ANYTIME, adopting.resume)
RETIRE: Final[CommandTable[Retire]] = dict.fromkeys(_ANYTIME, draining.retire)
