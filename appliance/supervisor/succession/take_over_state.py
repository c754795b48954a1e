"""The position of one supervisord in a take-over, and what it needs of the supervisor of the programs."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol

from appliance import __version__
from appliance.wire.lines.succession import INSTANCE, Party


class Phase(Enum):
    """Our phase in a take-over. RELIEVED: the other one is in charge, and we exit when our children have."""

    SERVING = auto()
    TAKING_OVER = auto()
    STANDING_BY = auto()
    RELIEVED = auto()


@dataclass(slots=True, kw_only=True)
class TakeOverState:
    """Our phase, its deadline, and the other supervisord; `failed` if we could not take over ourselves."""

    phase: Phase = Phase.SERVING
    deadline: float = 0.0
    failed: bool = False
    other_pid: int = 0
    other: Party = field(default_factory=Party)


class Supervised(Protocol):
    """The programs of this supervisord."""

    def refusal(self) -> str:
        """Return why they cannot be left to another supervisord now, "" if they can."""
        ...

    def programs(self) -> Mapping[str, int]:
        """Return those that should run, with the process id of each, 0 until it runs permanently."""
        ...

    def given_up(self) -> str:
        """Return why one of them will not come up, "" as long as all may."""
        ...

    def drain(self) -> float:
        """Return the seconds that sessions have to end."""
        ...

    def stand_by(self) -> None:
        """Restart nothing, and accept no commands."""
        ...

    def resume(self, *, former: str) -> None:
        """Supervise again, after the instance `former`: end its programs, and start missing ones."""
        ...


def ourselves() -> Party:
    """Return our own data for the other supervisord."""
    return Party(version=__version__, instance=os.environ.get(INSTANCE, ""))
