"""The states of a server, in HAProxy's words: by its checks, by the operator, and both together.

HAProxy calls the first the operational and the second the administrative state (management.txt, `show servers
state`). The board of the prober stores the numbers, so a number never changes its meaning.
"""

from enum import IntEnum, StrEnum


class HealthVerdict(IntEnum):
    """The state of a server by its checks. UNKNOWN until its first check has ended."""

    UNKNOWN = 0
    UP = 1
    DOWN = 2


class AdminState(IntEnum):
    """The operator's order for a server: DRAIN takes no new connections, MAINT is out of service."""

    READY = 0
    DRAIN = 1
    MAINT = 2


class ServerState(StrEnum):
    """The one word for a server that operators see: CHECKING is before the first verdict."""

    UP = "up"
    DOWN = "down"
    DRAIN = "drain"
    MAINT = "maint"
    CHECKING = "checking"


def state_of(verdict: HealthVerdict, admin: AdminState) -> ServerState:
    """Return the one word: maint wins over the checks, and a failed check wins over drain."""
    if admin is AdminState.MAINT:
        return ServerState.MAINT
    if verdict is HealthVerdict.DOWN:
        return ServerState.DOWN
    if admin is AdminState.DRAIN:
        return ServerState.DRAIN
    return ServerState.UP if verdict is HealthVerdict.UP else ServerState.CHECKING
