"""What was found on the machine for a status: each source may be missing, none is waited for.

`console` collects it; nothing here is judged yet.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

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
from appliance.wire.lines.control import AnswerProblem
from appliance.wire.lines.discovery_status import DiscoveryStatus
from appliance.wire.lines.forward_status import ForwardStatus
from appliance.wire.lines.linger_status import LingerStatus
from appliance.wire.lines.redirect_status import RedirectStatus
from appliance.wire.lines.vrrp_status import VrrpStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisedProgram:
    """A program as supervisord sees it; `reason` is why it does not run, None when it does."""

    name: str
    state: ProgramState
    pid: int | None
    started_at: float | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LastReload:
    """The reload that ended last: when, in Unix seconds, and whether it did what was asked."""

    at: float
    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusAnswer:
    """What a program answered to `status` on its control socket; what it does not tell has a default.

    `not_kept` are files that it cannot write, with the reasons. Only `reload` tells the `version`, the
    `socket_failures` (reload sockets on which it does not listen, with the reasons), how many `reloads` had
    which result, the `last` one, in `refused` what was wrong with it, nothing after a good one, and in
    `again_in` after how many seconds that is tried again, None where it is not.
    """

    pid: int | None = None
    started_at: float | None = None
    snapshot: int | None = None
    generation: int | None = None
    version: str | None = None
    socket_failures: Mapping[str, str] = field(default_factory=dict)
    not_kept: Mapping[str, str] = field(default_factory=dict)
    refused: tuple[AnswerProblem, ...] = ()
    again_in: float | None = None
    reloads: Mapping[str, int] = field(default_factory=dict)
    last: LastReload | None = None


class SupervisordNotAsked(StrEnum):
    """Why supervisord was not asked, which is no problem: the programs' own answers say that they run."""

    PERMISSION = "not asked: permission denied"
    NOT_WANTED = "not asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """All that was found.

    `snapshot` is the accepted one, or why it could not be read. `supervised` is what supervisord answered, or
    why it did not answer; SupervisordNotAsked where it answers its owner only, and we are somebody else.
    `answers` are by program, those of programs that did not answer are missing; `vrrp`, `discovery`,
    `redirect`, `forward` and `linger` are all that those programs told. `workers` are the boards of those
    that live. `failures` are by program why it could not start, as it left that in a file. `set_aside` are
    damaged files under the names that they have now. `accepted_at` is when the snapshot was accepted, Unix
    seconds. `starts` is by program how often it was started. `vrrp_board` has the counters of vrrp, which go
    on over its restarts. `take_overs` is what became of upgrades in place. `connection_room` is there where
    the configuration has the kernel track connections.
    """

    snapshot: Snapshot | str
    supervised: tuple[SupervisedProgram, ...] | SupervisordNotAsked | str
    answers: Mapping[str, StatusAnswer]
    health: HealthBoard | None
    workers: tuple[WorkerBoard, ...]
    failures: Mapping[str, str]
    degraded: DegradedStart | None
    vrrp: VrrpStatus | None = None
    discovery: DiscoveryStatus | None = None
    guest: GuestReport | None = None
    set_aside: tuple[str, ...] = ()
    redirect: RedirectStatus | None = None
    forward: ForwardStatus | None = None
    linger: LingerStatus | None = None
    ended: Mapping[str, EndedWorkers] = field(default_factory=dict)
    accepted_at: float | None = None
    starts: Mapping[str, int] = field(default_factory=dict)
    vrrp_board: VrrpBoard | None = None
    take_overs: TakeOvers = field(default_factory=TakeOvers)
    connection_room: ConnectionRoom | None = None

    @property
    def living(self) -> bool:
        """Whether anything of the appliance runs: where nothing does, boards tell of a time that is over."""
        return bool(self.answers or self.workers) or isinstance(self.supervised, tuple)
