"""How a health check of a server ended, in HAProxy's words."""

from enum import StrEnum
from typing import Final


class CheckResult(StrEnum):
    """How a check ended (HAProxy's management.txt, `check_status`): the layer that decided, and its finding.

    OK is an answer as expected, TOUT none in time, CON no connection, RSP an answer that breaks the protocol
    or whose body lacks the expected text, STS an unexpected HTTP status. The board of the prober stores
    positions in this list: add new ones at its end.
    """

    UNCHECKED = "UNK"
    L4OK = "L4OK"
    L4TOUT = "L4TOUT"
    L4CON = "L4CON"
    L6OK = "L6OK"
    L6TOUT = "L6TOUT"
    L6RSP = "L6RSP"
    L7OK = "L7OK"
    L7TOUT = "L7TOUT"
    L7RSP = "L7RSP"
    L7STS = "L7STS"


UNREACHABLE: Final = frozenset(
    {CheckResult.L4TOUT, CheckResult.L4CON, CheckResult.L6TOUT, CheckResult.L6RSP, CheckResult.L7TOUT}
)
"""Failures of a server that does not answer at all. The others, L7RSP and L7STS, are bad answers."""
