"""One configuration for all nodes: accepted on all that can be reached, or on none.

Both sides are here. Each node checks the file, and applies and keeps it on order: anything else, also the
end of the connection, makes it go back to the file before. So what is lost between two steps leaves all nodes
as they were. Only after the order to keep it may a node be lost that has gone back: it is named, like a node
that was down, and gets the file with the next push.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum


class Step(StrEnum):
    """What a node has done."""

    CHECKED = "checked"
    APPLIED = "applied"
    KEPT = "kept"
    BACK = "back"


class Order(StrEnum):
    """What a node is ordered to do."""

    APPLY = "apply"
    KEEP = "keep"


class Outcome(StrEnum):
    """The outcome of a step on a node: `down` has never answered, `lost` no longer does."""

    AGREED = "agreed"
    REFUSED = "refused"
    DOWN = "down"
    LOST = "lost"


class Fate(StrEnum):
    """Which configuration a node has in the end."""

    ACCEPTED = "accepted"
    AS_BEFORE = "as before"
    NOT_REACHED = "not reached"
    UNKNOWN = "not known"


class Push:
    """The part of the one who pushes: `awaited` is the step that is awaited, None at the end."""

    def __init__(self, nodes: Iterable[str]) -> None:
        self.awaited: Step | None = Step.CHECKED
        self.fates: dict[str, Fate] = {}
        self._nodes = tuple(nodes)

    @property
    def is_accepted(self) -> bool:
        """Whether the nodes that were reached were ordered to keep it."""
        return Fate.ACCEPTED in self.fates.values()

    def decide(self, outcomes: Mapping[str, Outcome]) -> Order | None:
        """Return the order for all nodes that take part now; None is the end of the orders.

        `outcomes` are those of the awaited step, of every node that takes part.
        """
        match self.awaited:
            case Step.CHECKED:
                return self._after_check(outcomes)
            case Step.APPLIED:
                agreed = all(each is Outcome.AGREED for each in outcomes.values())
                self.awaited = Step.KEPT if agreed else Step.BACK
                return Order.KEEP if agreed else None
            case Step.KEPT:
                self._end(outcomes, Fate.ACCEPTED)
            case _:
                self._end(outcomes, Fate.AS_BEFORE)
        return None

    @property
    def taking_part(self) -> tuple[str, ...]:
        """Return the nodes that were reached."""
        return tuple(each for each in self._nodes if each not in self.fates)

    def _after_check(self, outcomes: Mapping[str, Outcome]) -> Order | None:
        for name, outcome in outcomes.items():
            if outcome is Outcome.DOWN:
                self.fates[name] = Fate.NOT_REACHED
        reached = self.taking_part
        if reached and all(outcomes[name] is Outcome.AGREED for name in reached):
            self.awaited = Step.APPLIED
            return Order.APPLY
        self.fates |= dict.fromkeys(reached, Fate.AS_BEFORE)
        self.awaited = None
        return None

    def _end(self, outcomes: Mapping[str, Outcome], fate: Fate) -> None:
        for name in self.taking_part:
            self.fates[name] = fate if outcomes[name] is Outcome.AGREED else Fate.UNKNOWN
        self.awaited = None


def next_step(done: Step, order: str | None, *, succeeded: bool) -> Step | None:
    """Return what a node does after a step; None for nothing more. `order` is None if none has come."""
    if done is Step.CHECKED:
        return Step.APPLIED if succeeded and order == Order.APPLY else None
    if done is Step.APPLIED:
        return Step.KEPT if succeeded and order == Order.KEEP else Step.BACK
    return None
