"""The effective priority of one instance, and how long it waits for what it tracks.

Results come from netlink (interfaces) and from the program `tracker` (all others). The rules are in
`core.tracking`: `priority` computes the sum, `first_verdicts` bounds the wait for the first results.
"""

from collections.abc import Mapping

from appliance.core.tracking.first_verdicts import FirstVerdicts, FirstVerdictState
from appliance.core.tracking.priority import MissingVerdict, Priority, TrackResult, effective_priority
from appliance.model.snapshot.virtual_router import Track, TrackKind, VirtualRouter


class TrackedPriority:
    """What an instance tracks: `results` by the track's name, and the `priority` that they give."""

    def __init__(self, router: VirtualRouter) -> None:
        self.router = router
        self.results: dict[str, TrackResult] = {}
        self.first_verdicts = FirstVerdicts()
        self.priority = self._effective()

    @property
    def missing(self) -> list[Track]:
        """Return the tracks that have no result yet."""
        return [each for each in self.router.track if each.name not in self.results]

    @property
    def all_arrived(self) -> bool:
        """Say whether nothing is missing any more of what was waited for."""
        return self.first_verdicts.state is not FirstVerdictState.COMPLETE and not self.missing

    @property
    def counts_missing_as(self) -> str:
        """Return what a track without a weight counts as while its result is missing: for the log."""
        return "down" if self.first_verdicts.missing_means is MissingVerdict.FAULT else "passed"

    @property
    def fault_messages(self) -> dict[str, str]:
        """Return the tracks that keep the instance from taking part, each with the message for operators."""
        return {name: f"track {name}: {self._detail(name)}" for name in self.priority.fault}

    def resume(self, results: Mapping[str, TrackResult]) -> None:
        """Start with the results of an earlier run; netlink tells of interfaces anew."""
        tracked = {each.name for each in self.router.track if each.kind is not TrackKind.INTERFACE}
        self.results |= {name: result for name, result in results.items() if name in tracked}

    def update(self) -> None:
        """Compute the priority from the present results."""
        self.priority = self._effective()

    def _detail(self, name: str) -> str:
        if name not in self.results:
            return "no result yet"
        return self.results[name].detail or "down"

    def _effective(self) -> Priority:
        router = self.router
        return effective_priority(
            router.priority, router.track, self.results, missing_means=self.first_verdicts.missing_means
        )
