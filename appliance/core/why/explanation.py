"""An explanation as a value: the state, who decided it, on which evidence, and what would change it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from appliance.core.checks.stale_verdicts import outdated
from appliance.core.status.observations import Observations
from appliance.core.status.pools import health_records
from appliance.core.status.problems import located
from appliance.core.status.quantities import duration
from appliance.core.status.status import ProgramState, Status
from appliance.model.operator_events import OperatorEvent
from appliance.model.snapshot.snapshot import Snapshot
from appliance.wire.lines.reload_status import ReloadStatus


class Kind(StrEnum):
    """What can be explained."""

    SERVER = "server"
    POOL = "pool"
    FRONTEND = "frontend"
    VIRTUAL_IP = "vip"
    SHARED_IP = "shared"
    NEIGHBOR = "neighbor"


class Decider(StrEnum):
    """Who or what has decided the state.

    CHECK are the health checks, OPERATOR is drain, maint and `vip move`, CONFIGURATION is the file, DISCOVERY
    the cluster's API, LIMIT a limit that is reached, PROGRAM one of our programs that fails, OTHER_PROGRAM
    another program on the node. ELECTION are the priorities of VRRP, TRACK a track of a virtual or
    shared IP, INTERFACE the network of this node, PEER another router, GROUP a sync group. NOBODY: nothing
    runs or has decided yet.
    """

    CHECK = "check"
    OPERATOR = "operator"
    CONFIGURATION = "configuration"
    DISCOVERY = "discovery"
    LIMIT = "limit"
    PROGRAM = "program"
    OTHER_PROGRAM = "other-program"
    ELECTION = "election"
    TRACK = "track"
    INTERFACE = "interface"
    PEER = "peer"
    GROUP = "sync-group"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Something that would change the state; `command` does it, or shows more; None if one must wait."""

    text: str
    command: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The whole explanation. `since` is Unix seconds, None if unknown. `answer` is one sentence.

    `reasons` are the evidence in sentences, `circumstances` what holds for the whole appliance and may be
    part of the reason, `changes` what would change the state, `history` what happened before.
    """

    kind: Kind
    name: str
    state: str
    since: float | None
    decided_by: Decider
    answer: str
    reasons: tuple[str, ...]
    circumstances: tuple[str, ...]
    changes: tuple[Change, ...]
    history: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The evidence at `now`, Unix seconds; `moment` writes a time (Unix seconds) in the form for operators.

    `supervisorctl` is the command for the appliance's own supervisord. `events` are the kept events, oldest
    first.
    """

    snapshot: Snapshot
    observations: Observations
    status: Status
    now: float
    moment: Callable[[float], str]
    supervisorctl: str
    events: tuple[OperatorEvent, ...] = ()

    def since(self, at: float | None) -> str:
        """Return ` since 14:02:11 (3m 4s)`, or nothing if it is unknown."""
        return f" since {self.moment(at)} ({duration(max(0.0, self.now - at))})" if at else ""

    def ago(self, at: float) -> str:
        """Return `3m 4s ago`."""
        return f"{duration(max(0.0, self.now - at))} ago"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found out about one thing, in the words of an Explanation."""

    state: str
    decided_by: Decider
    answer: str
    since: float | None = None
    reasons: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()


def explained(kind: Kind, name: str, found: Finding, evidence: Evidence, *more: str) -> Explanation:
    """Return the explanation of a finding, with `more` reasons."""
    return Explanation(
        kind=kind,
        name=name,
        state=found.state,
        since=found.since or None,
        decided_by=found.decided_by,
        answer=found.answer,
        reasons=(*found.reasons, *more),
        circumstances=circumstances(evidence),
        changes=found.changes,
    )


def circumstances(evidence: Evidence) -> tuple[str, ...]:
    """Return the circumstances of the running configuration."""
    return (*_last_good(evidence), *_refused(evidence))


def _last_good(evidence: Evidence) -> Iterator[str]:
    degraded = evidence.status.degraded
    if degraded is None:
        return
    errors = "; ".join(located(each) for each in degraded.errors)
    yield (
        f"The last good configuration runs{evidence.since(degraded.since)}, not the file, which has errors:"
        f" {errors}. Once they are mended: appliance reload"
    )


def _refused(evidence: Evidence) -> Iterator[str]:
    reload = evidence.observations.answer(ReloadStatus)
    if reload is None or not reload.refused:
        return
    when = f", {evidence.ago(reload.last.at)}," if reload.last else ""
    errors = "; ".join(located(each) for each in reload.refused)
    yield (
        f"The last reload{when} was refused, so that configuration {evidence.snapshot.number} runs on:"
        f" {errors}. {_next_try(reload.again_in)}"
    )


def _next_try(again_in: float | None) -> str:
    if again_in is None:
        return "Once that is mended: appliance reload"
    return f"It is tried again by itself, in {again_in:.0f} s"


def health_circumstances(evidence: Evidence) -> tuple[str, ...]:
    """Return the circumstances of the program that checks: without it the last verdicts hold."""
    return (*_health(evidence), *_stale(evidence))


def _health(evidence: Evidence) -> Iterator[str]:
    for program in evidence.status.programs:
        if program.name == "health" and program.state is not ProgramState.RUNNING:
            state = f"{program.state} ({program.reason})" if program.reason else program.state
            yield f"The program health is {state}: nothing is checked, and the last verdicts hold."


def _stale(evidence: Evidence) -> Iterator[str]:
    records = health_records(evidence.observations)
    yield from (
        f"{each[:1].upper()}{each[1:]}." for each in outdated(evidence.snapshot, records, now=evidence.now)
    )
