"""What a worker may expect of an accept queue that it takes connections from."""

from enum import StrEnum


class AcceptClaim(StrEnum):
    """A worker's claim to what waits in a queue."""

    SOLE = "sole"
    """Nobody else takes connections from it."""

    FIRST = "first"
    """Others take what this worker leaves."""

    EQUAL = "equal"
    """Several workers have the same claim."""

    SPARE = "spare"
    """This worker takes what another one leaves."""
