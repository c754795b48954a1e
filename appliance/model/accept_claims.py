"""A worker's claims to accept queues."""

from enum import StrEnum


class AcceptClaim(StrEnum):
    """A worker's claim to the connections that wait in a queue."""

    SOLE = "sole"
    """No other worker takes connections from it."""

    FIRST = "first"
    """Others take the connections that this worker leaves."""

    EQUAL = "equal"
    """Several workers have the same claim."""

    SPARE = "spare"
    """This worker takes the connections that another one leaves."""
