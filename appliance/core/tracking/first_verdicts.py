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

from appliance.core.tracking.priority import Unknown
from appliance.model.snapshot.virtual_router import Track

TRACKER_START: Final = 5.0
"""Seconds that the tracker may take until it looks, on a machine that boots."""


class FirstVerdictState(Enum):
    """NEEDLESS: nothing is missing or waited for. PENDING: a claim is held back. OVER: it took too long."""

    NEEDLESS = "needless"
    PENDING = "pending"
    OVER = "over"


class FirstVerdicts:
    """The verdicts of one router that are missing. `unknown` is what they mean now.

    `deadline` is when to ask whether it is `overdue`, None for never.
    """

    __slots__ = ("deadline", "patience", "unknown")

    def __init__(self) -> None:
        self.patience = FirstVerdictState.NEEDLESS
        self.unknown = Unknown.PASS
        self.deadline: float | None = None

    @property
    def held_until(self) -> float:
        """Until when nothing is to be claimed; 0.0 where nothing keeps from it."""
        return (
            self.deadline if self.patience is FirstVerdictState.PENDING and self.deadline is not None else 0.0
        )

    def ask(self, missing: Sequence[Track], now: float) -> None:
        """Begin to wait for the verdicts of these, of one that does not serve yet."""
        if not missing:
            self.forgo()
            return
        self.patience = FirstVerdictState.PENDING
        self.unknown = Unknown.PASS
        self.deadline = now + TRACKER_START + max(each.interval + each.timeout for each in missing)

    def forgo(self) -> None:
        """Wait for none: all have come, or the router serves already, and does not stop for one to come."""
        self.patience = FirstVerdictState.NEEDLESS
        self.unknown = Unknown.PASS
        self.deadline = None

    def overdue(self, now: float, *, accompanied_until: float) -> None:
        """Take that the time is over; another active counts as there until `accompanied_until`."""
        self.patience = FirstVerdictState.OVER
        if accompanied_until > now:
            self.unknown, self.deadline = Unknown.FAULT, accompanied_until
        else:
            self.unknown, self.deadline = Unknown.PASS, None
