"""Observations of the machine for a status, any of which may be missing; nothing is judged yet."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from appliance.core.status.connection_room import ConnectionRoom
from appliance.core.status.status import (
    DegradedStart,
    ProgramState,
)
from appliance.model.guest.report import GuestReport
from appliance.model.snapshot.snapshot import Snapshot
from appliance.model.take_overs import TakeOvers
from appliance.wire.boards.ended_workers import EndedWorkers
from appliance.wire.boards.health_board import HealthBoard
from appliance.wire.boards.vrrp_board import VrrpBoard
from appliance.wire.boards.worker_board import WorkerBoard
from appliance.wire.lines.status_answer import StatusAnswer

OfProgram = TypeVar("OfProgram", bound=StatusAnswer)


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisedProgram:
    """A program as supervisord reports it; `reason` is why it does not run, None if it does."""

    name: str
    state: ProgramState
    pid: int | None
    started_at: float | None
    reason: str | None


class SupervisordNotAsked(StrEnum):
    """Why supervisord was not asked, which is no problem: the programs' own answers show that they run."""

    PERMISSION = "not asked: permission denied"
    NOT_WANTED = "not asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """All observations.

    `snapshot` is the accepted one, or why it could not be read. `supervised` is supervisord's answer, or why
    it did not answer; SupervisordNotAsked if it answers only its owner, which is another user. `answers` are
    by program, in the type that `core.program_table` names, without those that did not answer. `workers`
    are the boards of living workers. `failures` are by program why it could not start, as it wrote that to a
    file. `set_aside` are damaged files under their present names. `accepted_at` is when the snapshot was
    accepted, Unix seconds. `starts` is by program how often it was started. `vrrp_board` has the counters of
    vrrp, which survive its restarts. `take_overs` are the results of upgrades in place. `connection_room` is
    set if the configuration has the kernel track connections.
    """

    snapshot: Snapshot | str
    supervised: tuple[SupervisedProgram, ...] | SupervisordNotAsked | str
    answers: Mapping[str, StatusAnswer]
    health: HealthBoard | None
    workers: tuple[WorkerBoard, ...]
    failures: Mapping[str, str]
    degraded: DegradedStart | None
    guest: GuestReport | None = None
    set_aside: tuple[str, ...] = ()
    ended: Mapping[str, EndedWorkers] = field(default_factory=dict)
    accepted_at: float | None = None
    starts: Mapping[str, int] = field(default_factory=dict)
    vrrp_board: VrrpBoard | None = None
    take_overs: TakeOvers = field(default_factory=TakeOvers)
    connection_room: ConnectionRoom | None = None

    def answer(self, kind: type[OfProgram]) -> OfProgram | None:
        """Return the answer of the program whose status is of that type, None if it did not answer."""
        return next((each for each in self.answers.values() if isinstance(each, kind)), None)

    @property
    def living(self) -> bool:
        """Whether anything of the appliance runs: if nothing does, boards are out of date."""
        return bool(self.answers or self.workers) or isinstance(self.supervised, tuple)
