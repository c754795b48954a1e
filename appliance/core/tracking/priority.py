"""The effective priority of a virtual router: its configured one and the weights of its tracks.

keepalived's rules (vrrp_track.c, keepalived.conf(5) `weight`): a positive weight is added while the track is
up, a negative one while it is down; the number in a file is multiplied by the weight. The sum stays between
1 and 254, and the priority of the owner, 255, never changes. A track without a weight that is down means
FAULT, and so does a file whose product is below -253.

A track without a verdict adds nothing. If it has no weight either, it counts as up or as FAULT: see
`MissingVerdict`, and `core.tracking.first_verdicts`, which decides.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from appliance.core.vrrp.election import OWNER
from appliance.model.snapshot.virtual_router import Track, TrackKind
from appliance.wire.lines.vrrp_status import PriorityPartStatus

LEAST: Final = -253
"""The least that one track can add; a file's product below it means FAULT."""


class MissingVerdict(Enum):
    """What a track without a weight means while it has no verdict.

    PASS while a claim is delayed for it, and for an active router, which does not stop for a track that a
    reload has added.
    """

    FAULT = "fault"
    PASS = "pass"  # noqa: S105  # a decision, no secret


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackResult:
    """The present verdict of a track; `value` is the number in a file, 0 for the other kinds."""

    up: bool
    value: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Priority:
    """The effective priority with its parts; `fault` has the names of the tracks that mean FAULT."""

    value: int
    base: int
    parts: tuple[PriorityPartStatus, ...]
    fault: tuple[str, ...]


def effective_priority(
    base: int,
    tracks: Iterable[Track],
    results: Mapping[str, TrackResult],
    *,
    missing_means: MissingVerdict = MissingVerdict.FAULT,
) -> Priority:
    """Return the effective priority; `results` are by the track's name, only of tracks with a verdict."""
    parts = tuple(_part(track, results.get(track.name)) for track in tracks)
    total = base + sum(part.added for part in parts)
    return Priority(
        value=OWNER if base == OWNER else min(max(total, 1), 254),
        base=base,
        parts=parts,
        fault=tuple(part.track for part in parts if _means_fault(part, missing_means)),
    )


def _means_fault(part: PriorityPartStatus, missing_means: MissingVerdict) -> bool:
    if part.weight is not None:
        return part.added < LEAST
    return missing_means is MissingVerdict.FAULT if part.up is None else not part.up


def _part(track: Track, result: TrackResult | None) -> PriorityPartStatus:
    if result is None:
        return PriorityPartStatus(track=track.name, weight=track.weight, up=None, value=0, added=0, detail="")
    return PriorityPartStatus(
        track=track.name,
        weight=track.weight,
        up=result.up,
        value=result.value,
        added=_added(track, result),
        detail=result.detail,
    )


def _added(track: Track, result: TrackResult) -> int:
    if track.weight is None:
        return 0
    if track.kind is TrackKind.FILE:
        return track.weight * result.value
    return track.weight if result.up == (track.weight > 0) else 0
