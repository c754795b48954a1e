"""The states of a generation and of a worker, and the moves between them: two tables that the machine runs.

A generation:

    STARTING -all_ready-> READY -commit-> OPENING -all_accept-> ACCEPTING
    OPENING | ACCEPTING | DRAINING -drain-> DRAINING
    ACCEPTING -reopen-> OPENING

It also ends, which is no state: STARTING and READY when it fails or is aborted, DRAINING with its last
worker. A generation that was taken over begins as ACCEPTING or DRAINING.

A worker:

    WAITING -start-> STARTING -ready-> READY -accept-> OPENING -accepted-> ACCEPTING
    OPENING | ACCEPTING | DRAINING -drain-> DRAINING
    STARTING | READY | OPENING | ACCEPTING | DRAINING -kill-> ENDING
    STARTING | READY | OPENING | ACCEPTING | ENDING -died-> WAITING

It also ends, which is no state: with its process, if no other is to take its place. A worker that was taken
over begins as READY, ACCEPTING or DRAINING.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class GenerationState(StrEnum):
    """The state of a generation. STARTING and READY are before the commit, the others after it.

    OPENING: its workers were ordered to accept, and not all have reported that they do.
    """

    STARTING = "starting"
    READY = "ready"
    OPENING = "opening"
    ACCEPTING = "accepting"
    DRAINING = "draining"


class GenerationMove(StrEnum):
    """What moves a generation from one state to another."""

    ALL_READY = "all_ready"
    COMMIT = "commit"
    ALL_ACCEPT = "all_accept"
    DRAIN = "drain"
    REOPEN = "reopen"


class WorkerState(StrEnum):
    """The state of a worker.

    WAITING: it has no process, and gets one at its deadline. READY: it holds the listening sockets and does
    not accept. OPENING: it was ordered to accept. ENDING: it was killed, and its process is not gone yet.
    """

    WAITING = "waiting"
    STARTING = "starting"
    READY = "ready"
    OPENING = "opening"
    ACCEPTING = "accepting"
    DRAINING = "draining"
    ENDING = "ending"


class WorkerMove(StrEnum):
    """What moves a worker from one state to another."""

    START = "start"
    READY = "ready"
    ACCEPT = "accept"
    ACCEPTED = "accepted"
    DRAIN = "drain"
    KILL = "kill"
    DIED = "died"


_G: Final = GenerationState
_W: Final = WorkerState

GENERATION_MOVES: Final[Mapping[tuple[GenerationState, GenerationMove], GenerationState]] = {
    (_G.STARTING, GenerationMove.ALL_READY): _G.READY,
    (_G.READY, GenerationMove.COMMIT): _G.OPENING,
    (_G.OPENING, GenerationMove.ALL_ACCEPT): _G.ACCEPTING,
    # After a take-over with workers missing: an older generation that accepts continues until all are there.
    (_G.ACCEPTING, GenerationMove.REOPEN): _G.OPENING,
    (_G.OPENING, GenerationMove.DRAIN): _G.DRAINING,
    (_G.ACCEPTING, GenerationMove.DRAIN): _G.DRAINING,
    # An earlier deadline: a second TERM after a soft stop.
    (_G.DRAINING, GenerationMove.DRAIN): _G.DRAINING,
}

WORKER_MOVES: Final[Mapping[tuple[WorkerState, WorkerMove], WorkerState]] = {
    (_W.WAITING, WorkerMove.START): _W.STARTING,
    (_W.STARTING, WorkerMove.READY): _W.READY,
    (_W.READY, WorkerMove.ACCEPT): _W.OPENING,
    (_W.OPENING, WorkerMove.ACCEPTED): _W.ACCEPTING,
    (_W.OPENING, WorkerMove.DRAIN): _W.DRAINING,
    (_W.ACCEPTING, WorkerMove.DRAIN): _W.DRAINING,
    (_W.DRAINING, WorkerMove.DRAIN): _W.DRAINING,
    (_W.STARTING, WorkerMove.KILL): _W.ENDING,
    (_W.READY, WorkerMove.KILL): _W.ENDING,
    (_W.OPENING, WorkerMove.KILL): _W.ENDING,
    (_W.ACCEPTING, WorkerMove.KILL): _W.ENDING,
    (_W.DRAINING, WorkerMove.KILL): _W.ENDING,
    (_W.STARTING, WorkerMove.DIED): _W.WAITING,
    (_W.READY, WorkerMove.DIED): _W.WAITING,
    (_W.OPENING, WorkerMove.DIED): _W.WAITING,
    (_W.ACCEPTING, WorkerMove.DIED): _W.WAITING,
    (_W.ENDING, WorkerMove.DIED): _W.WAITING,
}

COMMITTED: Final = (GenerationState.OPENING, GenerationState.ACCEPTING)
"""The states of a generation that serves or will serve."""


@dataclass(frozen=True, slots=True)
class WorkerId:
    """A place in a generation; the worker that replaces a dead one takes its place."""

    generation: int
    index: int
