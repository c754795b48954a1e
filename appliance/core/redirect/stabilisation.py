"""When a redirect begins and ends: a table of what each look means in each state.

As in OpenShift's monitor (baremetal-runtimecfg, AlarmStabilization): it begins after `rise` good looks in a
row, 3 there, and ends after `fall` bad ones, 11, so that servers which come and go do not take it with them.
One thing is different: where nobody accepts, it ends at once, because the rules would lead to nobody.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from typing import Final, assert_never


class Look(StrEnum):
    """What was seen: GOOD would do, BAD would not, and with NOBODY no worker accepts."""

    GOOD = "good"
    BAD = "bad"
    NOBODY = "nobody"


class _Step(Enum):
    COUNT = "count"  # one more look in a row that contradicts the state
    FORGET = "forget"  # the look agrees with the state
    END = "end"


_TABLE: Final[Mapping[tuple[bool, Look], _Step]] = {  # by whether it is on
    (False, Look.GOOD): _Step.COUNT,
    (False, Look.BAD): _Step.FORGET,
    (False, Look.NOBODY): _Step.FORGET,
    (True, Look.GOOD): _Step.FORGET,
    (True, Look.BAD): _Step.COUNT,
    (True, Look.NOBODY): _Step.END,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stabilised:
    """Whether a redirect is on, and how many looks in a row have contradicted that."""

    on: bool = False
    streak: int = 0


def after(before: Stabilised, look: Look, *, rise: int, fall: int) -> Stabilised:
    """Return what a look makes of a redirect."""
    step = _TABLE[before.on, look]
    match step:
        case _Step.COUNT:
            streak = before.streak + 1
            enough = streak >= (fall if before.on else rise)
            return Stabilised(on=not before.on) if enough else replace(before, streak=streak)
        case _Step.FORGET:
            return replace(before, streak=0)
        case _Step.END:
            return Stabilised()
        case _:
            assert_never(step)
