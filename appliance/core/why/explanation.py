"""An explanation as a value: the state, who decided it, on which evidence, and what would change it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from appliance.core.status.observations import Observations
from appliance.core.status.quantities import duration
from appliance.core.status.status import Status
from appliance.model.operator_events import OperatorEvent
from appliance.model.snapshot.snapshot import Snapshot


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
