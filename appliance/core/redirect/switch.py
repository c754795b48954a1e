"""The redirect of one frontend over time: from looks to whether it is wanted, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from typing import Final, assert_never

from appliance.model.snapshot.frontends import Frontend, Group, Redirect, RedirectWhen
from appliance.model.snapshot.snapshot import Snapshot


class Look(StrEnum):
    """Result of a look: GOOD would do, BAD would not, and with NOBODY no worker accepts."""

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
    """Return the state of a redirect after a look."""
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


NOT_LOOKED_YET: Final = "not looked at yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a look found: whether workers accept, whether a server is up, and both in words."""

    accepting: bool
    up: bool
    detail: str


class RedirectSwitch:
    """The redirect of one frontend; `wanted` is whether its rules should be there.

    `due` is the time of the next look. `resumed`: it was on when the program last ended, and one good look
    brings it back. `since` is when `wanted` last changed, by the clock of `now`.
    """

    def __init__(self, group: Group, frontend: Frontend, redirect: Redirect, *, resumed: bool) -> None:
        self.program = group.program
        self.frontend = frontend
        self.redirect = redirect
        self.reason = NOT_LOOKED_YET
        self.since: float | None = None
        self.due = 0.0
        self._group = group.name
        self._stabilised = Stabilised(streak=redirect.rise - 1 if resumed else 0)

    @property
    def name(self) -> str:
        """Return the frontend with its group, `api/kube-api`."""
        return f"{self._group}/{self.frontend.name}"

    @property
    def wanted(self) -> bool:
        """Whether its rules should be there."""
        return self._stabilised.on

    @property
    def streak(self) -> int:
        """How many looks in a row have contradicted its state."""
        return self._stabilised.streak

    @property
    def pool(self) -> str | None:
        """Name of the pool that needs a server up, None if none does."""
        if self.redirect.when is RedirectWhen.ACCEPTING:
            return None
        return self.frontend.pool or self.frontend.needs

    def same_as(self, other: "RedirectSwitch") -> bool:
        """Return whether another one makes the same rules by the same looks, so that its state holds here."""
        mine, theirs = self.frontend, other.frontend
        return (
            (self.name, self.redirect, self.pool) == (other.name, other.redirect, other.pool)
            and mine.binds == theirs.binds
        )  # fmt: skip

    def look(self, seen: Seen, now: float) -> bool:
        """Count a look that was due; return whether `wanted` changed."""
        self.due = now + self.redirect.interval
        return self._count(_look(seen), seen, now)

    def nobody(self, seen: Seen, now: float) -> bool:
        """Store that no worker accepts, at any time; return whether `wanted` changed."""
        return self._count(Look.NOBODY, seen, now)

    def _count(self, look: Look, seen: Seen, now: float) -> bool:
        before = self._stabilised
        self._stabilised = after(before, look, rise=self.redirect.rise, fall=self.redirect.fall)
        self.reason = seen.detail
        changed = before.on is not self._stabilised.on
        if changed or self.since is None:
            self.since = now
        return changed


def _look(seen: Seen) -> Look:
    if not seen.accepting:
        return Look.NOBODY
    return Look.GOOD if seen.up else Look.BAD


def switches(snapshot: Snapshot, *, resumed: frozenset[str] = frozenset()) -> tuple[RedirectSwitch, ...]:
    """Return a switch for each redirect of a snapshot; `resumed` are names of those that were on."""
    return tuple(
        RedirectSwitch(group, each, each.redirect, resumed=f"{group.name}/{each.name}" in resumed)
        for group in snapshot.groups
        for each in group.frontends
        if each.redirect is not None
    )
