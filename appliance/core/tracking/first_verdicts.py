"""What a router does before all that it tracks has a first verdict: it does not claim, for a bounded time.

The bound is the time in which every track must have been looked at: the longest interval and timeout of those
that are missing, and what the tracker takes to start. A verdict that has not come by then never may. Beside
another active a track without a weight then means fault, as in keepalived: nobody misses this router. Where
no other active is heard it counts as passed: the addresses would be nowhere. That is looked at again whenever
the other active may have gone.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Final

from appliance.core.tracking.priority import MissingVerdict
from appliance.model.snapshot.virtual_router import Track

TRACKER_START: Final = 5.0
"""Seconds that the tracker may take until it looks, on a machine that boots."""


class FirstVerdictState(Enum):
    """COMPLETE: no verdict is missing, or none is waited for. WAITING: a claim is held back.

    TIMED_OUT: a verdict did not come in time.
    """

    COMPLETE = "complete"
    WAITING = "waiting"
    TIMED_OUT = "timed-out"


class FirstVerdicts:
    """The verdicts of one router that are missing. `missing_means` is what they mean now.

    `deadline` is when to ask whether it is `overdue`, None for never.
    """

    __slots__ = ("deadline", "missing_means", "state")

    def __init__(self) -> None:
        self.state = FirstVerdictState.COMPLETE
        self.missing_means = MissingVerdict.PASS
        self.deadline: float | None = None

    @property
    def claim_held_until(self) -> float:
        """Until when nothing is to be claimed; 0.0 where nothing keeps from it."""
        return self.deadline if self.state is FirstVerdictState.WAITING and self.deadline is not None else 0.0

    def wait_for(self, missing: Sequence[Track], now: float) -> None:
        """Begin to wait for the verdicts of these, of one that does not serve yet."""
        if not missing:
            self.stop_waiting()
            return
        self.state = FirstVerdictState.WAITING
        self.missing_means = MissingVerdict.PASS
        self.deadline = now + TRACKER_START + max(each.interval + each.timeout for each in missing)

    def stop_waiting(self) -> None:
        """Wait for none: all have come, or the router serves already, and does not stop for one to come."""
        self.state = FirstVerdictState.COMPLETE
        self.missing_means = MissingVerdict.PASS
        self.deadline = None

    def time_out(self, now: float, *, other_active_until: float) -> None:
        """Take that the time is over; another active counts as there until `other_active_until`."""
        self.state = FirstVerdictState.TIMED_OUT
        if other_active_until > now:
            self.missing_means, self.deadline = MissingVerdict.FAULT, other_active_until
        else:
            self.missing_means, self.deadline = MissingVerdict.PASS, None
