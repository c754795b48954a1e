"""HAProxy's two letters for the end of a connection: who caused it, and in which phase.

Source: configuration.txt section 8.5, "Session state at disconnection".
"""

from enum import StrEnum
from typing import Final

from appliance.wire.worker_board import Reason


class Stage(StrEnum):
    """How far a connection had come; the value is HAProxy's second letter."""

    QUEUE = "Q"
    CONNECT = "C"
    DATA = "D"


_CAUSES: Final = {
    Reason.CLIENT_ABORT: "C",
    Reason.SERVER_ABORT: "S",
    Reason.CLIENT_TIMEOUT: "c",
    Reason.CLIENT_FIN_TIMEOUT: "c",
    Reason.SERVER_TIMEOUT: "s",
    Reason.SERVER_FIN_TIMEOUT: "s",
    Reason.CONNECT_TIMEOUT: "s",
    Reason.QUEUE_TIMEOUT: "s",
    Reason.CONNECT_REFUSED: "S",
    Reason.CONNECT_FAILED: "S",
    Reason.NO_SERVER: "S",
    Reason.QUEUE_FULL: "S",
    Reason.NO_PORTS: "R",
    Reason.NO_DESCRIPTORS: "R",
    Reason.SERVER_DOWN: "D",
    Reason.MAX_AGE: "P",
    Reason.DRAIN_CUT: "K",
    Reason.KILLED: "K",
}
_STAGES: Final = {Reason.QUEUE_FULL: Stage.QUEUE, Reason.QUEUE_TIMEOUT: Stage.QUEUE}


def termination(reason: Reason, stage: Stage) -> str:
    """Return the letters: `--` for a connection that ended by itself, `CD` for a client's reset."""
    if reason is Reason.COMPLETED:
        return "--"
    return _CAUSES.get(reason, "I") + _STAGES.get(reason, stage)
