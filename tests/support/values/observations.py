"""What is found on a machine where all is well, and what a test changes in it."""

from dataclasses import replace

from support.values import boards
from support.values.snapshots import snapshot

from appliance.core.status.observations import (
    Observations,
    StatusAnswer,
    SupervisedProgram,
)
from appliance.core.status.status import (
    ProgramState,
)

NOW = 200.0
NAMES = ("reload", "health", "proxy-api")


def supervised(name: str, state: ProgramState = ProgramState.RUNNING, **changes: object) -> SupervisedProgram:
    """Return a program that runs for 50 s."""
    running = SupervisedProgram(name=name, state=state, pid=77, started_at=150.0, reason=None)
    return replace(running, **changes)


def observations(**changes: object) -> Observations:
    """Return what is found where all is well."""
    found = Observations(
        snapshot=snapshot(number=7),
        supervised=tuple(map(supervised, NAMES)),
        answers={name: StatusAnswer(pid=77, started_at=150.0, snapshot=7) for name in NAMES},
        health=boards.health_board(boards.health()),
        workers=(boards.worker(),),
        failures={},
        degraded=None,
    )
    return replace(found, **changes)
