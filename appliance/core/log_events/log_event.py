"""One log event that an operator should look at: what it means, and what to do.

A step may contain `{supervisorctl}`: the command with the socket of this appliance, ready to paste.
"""

from dataclasses import dataclass
from typing import Final

NOTHING: Final = "nothing"
"""How a step begins if the appliance recovers by itself."""

REPORT: Final = "report it as a bug, with the traceback in the log and the archive of `appliance support`"
"""The step for an event that should be impossible."""

SEE_SUPPORT: Final = "if it recurs, report it with the archive of `appliance support`"
"""The step for an event that does no lasting harm, but should be rare."""


@dataclass(frozen=True, slots=True)
class LogEvent:
    """What an event means, and what to do about it: both are parts of a sentence."""

    means: str
    step: str
