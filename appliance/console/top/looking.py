"""Samples of the appliance for `appliance top`, and explanations of the last one."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from appliance.core.status.assessment import assess
from appliance.core.top.rates import Rates, Sample, counters, looked
from appliance.core.top.views import View
from appliance.core.why.explanation import Evidence, Explanation, Kind
from appliance.core.why.history import REMEMBERED
from appliance.core.why.subjects import meant
from appliance.core.why.why import explain
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.events.kept_events import events_since
from appliance.net.observing.observation import observe

_KINDS: Final = {
    View.FRONTENDS: Kind.FRONTEND,
    View.POOLS: Kind.POOL,
    View.SERVERS: Kind.SERVER,
    View.CHECKS: Kind.SERVER,
    View.VIPS: Kind.VIRTUAL_IP,
}


class Looker:
    """Reads the boards and asks the programs repeatedly; keeps what it needs for rates."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._rates: Rates | None = None
        self._evidence: Evidence | None = None

    def look(self) -> Sample:
        """Return the current state, whatever part of the appliance runs."""
        observations = observe(self._paths)
        now = time.time()
        status = assess(observations, now)
        self._rates = looked(self._rates, counters(status), time.monotonic())
        snapshot = observations.snapshot
        self._evidence = None
        if isinstance(snapshot, Snapshot):
            self._evidence = Evidence(
                snapshot=snapshot,
                observations=observations,
                status=status,
                now=now,
                moment=self.moment,
                supervisorctl=self._paths.supervisorctl,
            )
        return Sample(status=status, rates=self._rates)

    def explain(self, view: View, key: str) -> Sequence[str]:
        """Return the lines that explain a row of a view."""
        kind, evidence = _KINDS.get(view), self._evidence
        if kind is None or evidence is None:
            return (f"There are no more details of {key}. See: appliance status",)
        name = key.partition("/")[2] if kind is Kind.FRONTEND else key
        subjects = meant(name, evidence.snapshot, kind=kind)
        if not subjects:
            return (f"{key} no longer exists.",)
        return tuple(_told(explain(subjects[0], self._with_events(evidence))))

    def _with_events(self, evidence: Evidence) -> Evidence:
        """Return the evidence with the kept events, read once for each sample."""
        if not evidence.events:
            evidence = replace(evidence, events=tuple(events_since(self._paths, evidence.now - REMEMBERED)))
            self._evidence = evidence
        return evidence

    def moment(self, at: float) -> str:
        """Return the local time of the day."""
        return time.strftime("%H:%M:%S", time.localtime(at))


def _told(explanation: Explanation) -> Iterator[str]:
    yield explanation.answer
    yield ""
    yield from (f"- {each}" for each in (*explanation.reasons, *explanation.circumstances))
    if explanation.history:
        yield ""
        yield from (f"- {each}" for each in explanation.history)
    if explanation.changes:
        yield ""
        yield "What would change it:"
    for change in explanation.changes:
        yield f"- {change.text}"
        if change.command:
            yield f"    {change.command}"
