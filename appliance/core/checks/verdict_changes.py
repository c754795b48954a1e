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

from appliance.model.server_states import HealthVerdict
from appliance.model.snapshot.pools import Check


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
