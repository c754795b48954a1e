"""The effective priority of one instance from its tracks, and the wait for their first results.

Results come from netlink (interfaces) and from the program `tracker` (all others). The rules are in
`core.tracking`: `priority` computes the sum, `first_verdicts` bounds the wait.
"""

from collections.abc import Mapping

from structlog.typing import FilteringBoundLogger

from appliance.core.tracking.first_verdicts import FirstVerdicts, FirstVerdictState
from appliance.core.tracking.priority import MissingVerdict, Priority, TrackResult, effective_priority
from appliance.core.vrrp.election import Election, RouterState
from appliance.core.vrrp.timers import ClaimHold
from appliance.model.snapshot.virtual_router import Track, TrackKind, VirtualRouter
from appliance.vrrp.instance.faults import Faults


class TrackedPriority:
    """The tracks of an instance: `results` by the track's name, and the resulting `priority`.

    Holds claims of `election` back while first results are missing, and sets the faults of tracks.
    """

    def __init__(
        self, router: VirtualRouter, election: Election, faults: Faults, log: FilteringBoundLogger
    ) -> None:
        self.router = router
        self.results: dict[str, TrackResult] = {}
        self._election = election
        self._faults = faults
        self._log = log
        self._first_verdicts = FirstVerdicts()
        self.priority = self._effective()

    @property
    def deadline(self) -> float | None:
        """Return when to call `end_overdue_wait`, None for never."""
        return self._first_verdicts.deadline

    @property
    def missing(self) -> list[Track]:
        """Return the tracks that have no result yet."""
        return [each for each in self.router.track if each.name not in self.results]

    def resume(self, results: Mapping[str, TrackResult]) -> None:
        """Start with the results of an earlier run; netlink reports interfaces again."""
        tracked = {each.name for each in self.router.track if each.kind is not TrackKind.INTERFACE}
        self.results |= {name: result for name, result in results.items() if name in tracked}

    def update(self) -> None:
        """Compute the priority and the faults of the tracks from the present results."""
        if self._first_verdicts.state is not FirstVerdictState.COMPLETE and not self.missing:
            self.stop_waiting()
        self.priority = self._effective()
        self._faults.set_tracks({name: f"track {name}: {self._detail(name)}" for name in self.priority.fault})

    def wait(self, now: float) -> None:
        """Delay a claim until every track has a result; an active continues without one."""
        if self._election.state is RouterState.ACTIVE:
            self._first_verdicts.stop_waiting()
        else:
            self._first_verdicts.wait_for(self.missing, now)
        self._election.hold_claim(self._first_verdicts.claim_held_until, ClaimHold.TRACKS)

    def stop_waiting(self) -> None:
        """Stop delaying a claim: all results have arrived, or this router continues as active."""
        self._first_verdicts.stop_waiting()
        self._election.hold_claim(0.0, ClaimHold.TRACKS)

    def end_overdue_wait(self, now: float) -> None:
        """Stop waiting for overdue results; if another router is active, enter fault."""
        verdicts = self._first_verdicts
        if (at := verdicts.deadline) is None or now < at:
            return
        first = verdicts.state is FirstVerdictState.WAITING
        active = self._election.state is RouterState.ACTIVE
        verdicts.time_out(now, other_active_until=now if active else self._election.other_active_until)
        self._election.hold_claim(0.0, ClaimHold.TRACKS)
        self.update()
        if first:
            self._log.warning(
                "track-silent",
                router=self.router.name,
                tracks=[each.name for each in self.missing],
                counts_as="down" if verdicts.missing_means is MissingVerdict.FAULT else "passed",
            )

    def _detail(self, name: str) -> str:
        if name not in self.results:
            return "no result yet"
        return self.results[name].detail or "down"

    def _effective(self) -> Priority:
        return effective_priority(
            self.router.priority,
            self.router.track,
            self.results,
            missing_means=self._first_verdicts.missing_means,
        )
