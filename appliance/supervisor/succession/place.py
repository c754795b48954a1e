"""What one supervisord is in a take-over, and what it asks of whoever supervises the programs."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol

from appliance import __version__
from appliance.wire.lines.succession import INSTANCE, Party


class Phase(Enum):
    """What we are in a take-over. RELIEVED: another one is in charge, and we end when our children have."""

    SERVING = auto()
    TAKING_OVER = auto()
    STANDING_BY = auto()
    RELIEVED = auto()


@dataclass(slots=True, kw_only=True)
class Place:
    """What we are, until when, and who the other one is; `failed` where we could not take over ourselves."""

    phase: Phase = Phase.SERVING
    deadline: float = 0.0
    failed: bool = False
    other_pid: int = 0
    other: Party = field(default_factory=Party)


class Supervised(Protocol):
    """The programs of this supervisord."""

    def refusal(self) -> str:
        """Return why they cannot be left to another one now, "" where they can."""
        ...

    def programs(self) -> Mapping[str, int]:
        """Return those that are to run, with the process id of each, 0 while it does not run for good."""
        ...

    def given_up(self) -> str:
        """Return why one of them will not come up, "" as long as all may."""
        ...

    def drain(self) -> float:
        """Return the seconds that sessions have to end."""
        ...

    def stand_by(self) -> None:
        """Restart nothing, and answer nobody."""
        ...

    def resume(self, *, former: str) -> None:
        """Supervise again, after the instance `former`: end what it started, and start what is missing."""
        ...


def ourselves() -> Party:
    """Return who we are to another one."""
    return Party(version=__version__, instance=os.environ.get(INSTANCE, ""))
