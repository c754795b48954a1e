"""How long a virtual router waits for the first verdicts of its tracks before it claims.

It waits at most for the time in which every track must have been checked once: the longest interval and
timeout of those without a verdict, and the start of the tracker. After that it continues without them: a
check may hang for ever.

The meaning of a track without a weight then depends on the other routers. While another router is active it
means FAULT, as in keepalived: that router serves the addresses. While none is, the track counts as up:
otherwise no router would serve them. This is checked again when the other active may be gone.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Final

from appliance.core.tracking.priority import MissingVerdict
from appliance.model.snapshot.virtual_router import Track

TRACKER_START: Final = 5.0
"""Seconds that the tracker may take for its start, on a machine that boots."""


class FirstVerdictState(Enum):
    """The state of the wait.

    COMPLETE: no verdict is missing, or none is waited for. WAITING: a claim is held back. TIMED_OUT: a
    verdict did not come in time.
    """

    COMPLETE = "complete"
    WAITING = "waiting"
    TIMED_OUT = "timed-out"


class FirstVerdicts:
    """The wait of one virtual router. `missing_means` is the present meaning of a missing verdict.

    `deadline` is when to call `time_out`; None for never.
    """

    __slots__ = ("deadline", "missing_means", "state")

    def __init__(self) -> None:
        self.state = FirstVerdictState.COMPLETE
        self.missing_means = MissingVerdict.PASS
        self.deadline: float | None = None

    @property
    def claim_held_until(self) -> float:
        """Until when a claim is delayed, for `Election.hold_claim`; 0.0 for no delay."""
        return self.deadline if self.state is FirstVerdictState.WAITING and self.deadline is not None else 0.0

    def wait_for(self, missing: Sequence[Track], now: float) -> None:
        """Start to wait for the verdicts of these tracks; only a router that is not active waits."""
        if not missing:
            self.stop_waiting()
            return
        self.state = FirstVerdictState.WAITING
        self.missing_means = MissingVerdict.PASS
        self.deadline = now + TRACKER_START + max(each.interval + each.timeout for each in missing)

    def stop_waiting(self) -> None:
        """Stop waiting: all are there, or the router is active, and does not stop for a missing one."""
        self.state = FirstVerdictState.COMPLETE
        self.missing_means = MissingVerdict.PASS
        self.deadline = None

    def time_out(self, now: float, *, other_active_until: float) -> None:
        """Continue without verdicts; another active counts as present until `other_active_until`."""
        self.state = FirstVerdictState.TIMED_OUT
        if other_active_until > now:
            self.missing_means, self.deadline = MissingVerdict.FAULT, other_active_until
        else:
            self.missing_means, self.deadline = MissingVerdict.PASS, None
