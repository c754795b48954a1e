"""Events of the appliance that operators want to be notified of, in words that all programs share.

A program reports an event when it happens, with its cause: no one has to guess it from two readings of a
status.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class EventSeverity(StrEnum):
    """How much an event matters: INFO is good or expected, CRITICAL: clients are not served."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class EventKind(StrEnum):
    """What happened.

    The subject of an event is the server, pool, frontend, virtual IP, shared IP, neighbour, node or program.
    VIP_* are the states of our part in a virtual router: VIP_ACTIVE means that its addresses are here now.
    IP_* are those of a shared IP on this node; LAST_PATH means that no other node has it any more.
    SESSIONS_LEFT are those that stay on a node which their virtual IP has left.
    """

    SERVER_UP = "server-up"
    SERVER_DOWN = "server-down"
    SERVER_UNREACHABLE = "server-unreachable"
    SERVER_ANSWERS = "server-answers-badly"
    SERVER_READY = "server-ready"
    SERVER_DRAIN = "server-drain"
    SERVER_MAINT = "server-maint"
    LAST_SERVER = "last-server"
    POOL_EMPTY = "pool-empty"
    POOL_SERVES = "pool-serves"
    FRONTEND_FULL = "frontend-full"
    FRONTEND_HAS_ROOM = "frontend-has-room"
    RELOAD_DONE = "reload-done"
    RELOAD_REFUSED = "reload-refused"
    RELOAD_INCOMPLETE = "reload-incomplete"
    LAST_GOOD = "last-good-in-use"
    VIP_ACTIVE = "vip-active"
    VIP_BACKUP = "vip-backup"
    VIP_FAULT = "vip-fault"
    VIP_STOPPED = "vip-stopped"
    SPLIT_BRAIN = "split-brain"
    SESSIONS_MOVED = "sessions-moved"
    SESSIONS_LEFT = "sessions-left"
    SESSIONS_LOST = "sessions-lost"
    IP_ANNOUNCED = "ip-announced"
    IP_DRAINED = "ip-drained"
    IP_WITHDRAWN = "ip-withdrawn"
    LAST_PATH = "last-path"
    STRAYS_LIMITED = "strays-limited"
    BGP_SESSION_UP = "bgp-session-up"
    BGP_SESSION_DOWN = "bgp-session-down"
    BFD_UP = "bfd-up"
    BFD_DOWN = "bfd-down"
    CONFIGURATION_DIFFERS = "configuration-differs"
    CONFIGURATION_AGREES = "configuration-agrees"
    VERDICTS_DIFFER = "verdicts-differ"
    VERDICTS_AGREE = "verdicts-agree"
    PROGRAM_RUNNING = "program-running"
    PROGRAM_EXITED = "program-exited"
    PROGRAM_FAILING = "program-failing"
    PROGRAM_STOPPED = "program-stopped"
    WORKER_DIED = "worker-died"
    TAKEN_OVER = "appliance-taken-over"
    TAKE_OVER_FAILED = "take-over-failed"

    @property
    def severity(self) -> EventSeverity:
        """How much an event of this kind matters."""
        if self in _CRITICAL:
            return EventSeverity.CRITICAL
        return EventSeverity.WARNING if self in _WARNING else EventSeverity.INFO


_CRITICAL: Final = frozenset({EventKind.POOL_EMPTY, EventKind.SPLIT_BRAIN})
_WARNING: Final = frozenset(
    {
        EventKind.SERVER_DOWN,
        EventKind.SERVER_UNREACHABLE,
        EventKind.LAST_SERVER,
        EventKind.FRONTEND_FULL,
        EventKind.RELOAD_REFUSED,
        EventKind.RELOAD_INCOMPLETE,
        EventKind.LAST_GOOD,
        EventKind.VIP_FAULT,
        EventKind.SESSIONS_LOST,
        EventKind.IP_DRAINED,
        EventKind.IP_WITHDRAWN,
        EventKind.LAST_PATH,
        EventKind.STRAYS_LIMITED,
        EventKind.BGP_SESSION_DOWN,
        EventKind.BFD_DOWN,
        EventKind.CONFIGURATION_DIFFERS,
        EventKind.VERDICTS_DIFFER,
        EventKind.PROGRAM_EXITED,
        EventKind.PROGRAM_FAILING,
        EventKind.WORKER_DIED,
        EventKind.TAKE_OVER_FAILED,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorEvent:
    """One event. `when` is Unix seconds, `program` its reporter, `subject` what it is about: `pool/server`.

    `before` and `after` are states, "" if there is none; `cause` is a word of an enumeration (a check's
    result, why a router changed its state), `detail` a sentence for readers. `id` is unique on this machine,
    "" until the event was reported.
    """

    when: float
    kind: EventKind
    subject: str
    program: str = ""
    before: str = ""
    after: str = ""
    cause: str = ""
    detail: str = ""
    id: str = ""


Publish = Callable[[OperatorEvent], None]
"""A sink of events. It never waits, and never raises."""


def publish_nowhere(_: OperatorEvent) -> None:
    """Do nothing with it."""
