"""The phases of a worker process, as its board and the status of its program name them."""

from enum import IntEnum


class WorkerPhase(IntEnum):
    """What a worker is doing: READY waits for the order to accept, DRAINING only finishes what it has."""

    READY = 0
    ACCEPTING = 1
    DRAINING = 2
