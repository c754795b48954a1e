"""When the results of checks change the verdict on a server.

The table below is HAProxy's `rise` and `fall` (configuration.txt 5.2)::

    UNKNOWN --passed, FIRST--> UP
    UNKNOWN --failed, FIRST--> DOWN
    UP      --failed, FALL --> DOWN
    DOWN    --passed, RISE --> UP

FIRST is the first check of a server, FALL are `fall` failures in a row, RISE are `rise` successes in a row.
Between UP and DOWN HAProxy's page shows "UP 2/3" or "DOWN 1/3" while a row is not long enough; here the
verdict stays, and the length of the row is published with it as `streak`.

A verdict that was presumed (`init: up` or `init: down`, HAProxy's `init-state`) is changed by the first check
alone, whatever `rise` and `fall` are: the server has not been checked before.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final, assert_never

from appliance.core.checks.check_outcome import CheckOutcome
from appliance.model.server_states import HealthVerdict
from appliance.model.snapshot.pools import Check


class Reachability:
    """Counts the checks of one server without an answer; a bad answer, or being up, ends `unreachable`.

    A server that answers badly (L7STS, L7RSP) still ends its connections itself, such as an API server that
    shuts down: its /readyz is red, and its requests are completed. If nothing comes from a server (L4CON,
    L4TOUT, L6TOUT ...), no one ends its sessions. `on_down: auto` closes only those.
    """

    __slots__ = ("_unanswered", "unreachable")

    def __init__(self) -> None:
        self._unanswered = 0
        self.unreachable = False

    @property
    def in_question(self) -> bool:
        """Whether the last checks got no answer, but not yet enough of them in a row."""
        return bool(self._unanswered) and not self.unreachable

    def check_ended(self, outcome: CheckOutcome, *, needed: int) -> None:
        """Process an outcome: `needed` in a row without an answer; a bad answer counts at once."""
        if outcome.unreachable:
            self._unanswered += 1
            self.unreachable = self.unreachable or self._unanswered >= needed
            return
        self._unanswered = 0
        if not outcome.passed:
            self.unreachable = False

    def count_anew(self) -> None:
        """Forget the checks in a row, but keep their result: another check begins."""
        self._unanswered = 0


class InARow(Enum):
    """How many equal results in a row it takes."""

    FIRST = "first"
    RISE = "rise"
    FALL = "fall"

    def count(self, check: Check) -> int:
        """Return the number of results that the configuration of a check requires."""
        match self:
            case InARow.FIRST:
                return 1
            case InARow.RISE:
                return check.rise
            case InARow.FALL:
                return check.fall
            case _:
                assert_never(self)


CHANGES: Final[Mapping[tuple[HealthVerdict, bool], tuple[HealthVerdict, InARow]]] = {
    (HealthVerdict.UNKNOWN, True): (HealthVerdict.UP, InARow.FIRST),
    (HealthVerdict.UNKNOWN, False): (HealthVerdict.DOWN, InARow.FIRST),
    (HealthVerdict.UP, False): (HealthVerdict.DOWN, InARow.FALL),
    (HealthVerdict.DOWN, True): (HealthVerdict.UP, InARow.RISE),
}
"""By verdict, and whether the last check passed. A result that is missing here confirms the verdict."""


def verdict_after(
    verdict: HealthVerdict, *, passed: bool, streak: int, presumed: bool, check: Check
) -> HealthVerdict:
    """Return the verdict after another check; `streak` counts equal results, including this one.

    `presumed` is whether no check has decided anything yet.
    """
    change = CHANGES.get((verdict, passed))
    if change is None:
        return verdict
    changed, needed = change
    return changed if presumed or streak >= needed.count(check) else verdict
