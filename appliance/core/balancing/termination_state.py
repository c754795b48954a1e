"""HAProxy's two letters for a connection's end: who caused it, in which phase (configuration.txt s.8.5)."""

from enum import StrEnum
from typing import Final

from appliance.model.end_reasons import EndReason


class ConnectionStage(StrEnum):
    """How far a connection had come; the value is HAProxy's second letter."""

    QUEUE = "Q"
    CONNECT = "C"
    DATA = "D"


_CAUSES: Final = {
    EndReason.CLIENT_ABORT: "C",
    EndReason.SERVER_ABORT: "S",
    EndReason.CLIENT_TIMEOUT: "c",
    EndReason.CLIENT_FIN_TIMEOUT: "c",
    EndReason.SERVER_TIMEOUT: "s",
    EndReason.SERVER_FIN_TIMEOUT: "s",
    EndReason.CONNECT_TIMEOUT: "s",
    EndReason.QUEUE_TIMEOUT: "s",
    EndReason.CONNECT_REFUSED: "S",
    EndReason.CONNECT_FAILED: "S",
    EndReason.NO_SERVER: "S",
    EndReason.QUEUE_FULL: "S",
    EndReason.NO_PORTS: "R",
    EndReason.NO_DESCRIPTORS: "R",
    EndReason.SERVER_DOWN: "D",
    EndReason.SERVER_UP: "U",
    EndReason.MAX_AGE: "P",
    EndReason.DRAIN_CUT: "K",
    EndReason.KILLED: "K",
}
_STAGES: Final = {EndReason.QUEUE_FULL: ConnectionStage.QUEUE, EndReason.QUEUE_TIMEOUT: ConnectionStage.QUEUE}


def termination(reason: EndReason, stage: ConnectionStage) -> str:
    """Return the letters: `--` for a connection that ended by itself, `CD` for a client's reset."""
    if reason is EndReason.COMPLETED:
        return "--"
    return _CAUSES.get(reason, "I") + _STAGES.get(reason, stage)
