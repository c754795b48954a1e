"""One event of the log that wants an operator's eye: what it means, and what to do.

A step may hold `{supervisorctl}`: the command with the socket of this appliance, so that it can be pasted.
"""

from dataclasses import dataclass
from typing import Final

NOTHING: Final = "nothing"
"""How a step begins where the appliance helps itself."""

REPORT: Final = "report it as a bug, with the traceback in the log and what `appliance support` writes"
"""The step for what cannot happen."""

SEE_SUPPORT: Final = "if it comes again: report it with what `appliance support` writes"
"""The step for what is survived, and should not happen often."""


@dataclass(frozen=True, slots=True)
class LogEvent:
    """What an event means, and what to do about it: both parts of a sentence."""

    means: str
    step: str
