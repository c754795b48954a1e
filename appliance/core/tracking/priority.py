"""The effective priority of a virtual router, from its configured one and what it tracks.

keepalived's rule (vrrp_track.c, keepalived.conf(5) `weight`): a positive weight is added while the track is
up, a negative one while it is down; the number in a file is multiplied by the weight. The sum stays between
1 and 254, and an owner, 255, is not weighed. A track without weight that is down means fault, and so does a
file whose product is below -253.

A track without a verdict adds nothing. Without a weight it passes while a claim is held back for it, and for
a router that serves already: that one does not stop for a track which a reload has added. It means fault when
its time is over and another active is there: `core.tracking.first_verdicts` says when that is.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from appliance.core.vrrp.election import OWNER
from appliance.model.snapshot.virtual_router import Track, TrackKind

LEAST: Final = -253
"""The least that one track adds; a file's product below it means fault."""


class MissingVerdict(Enum):
    """What a track without a weight means while it has no verdict."""

    FAULT = "fault"
    PASS = "pass"  # noqa: S105  # a decision, no secret


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackResult:
    """The present verdict of a track; `value` is the number of a file, 0 for the other kinds."""

    up: bool
    value: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityPart:
    """What one track does to the priority: `added` to it. `up` None is no verdict yet."""

    track: str
    weight: int | None
    up: bool | None
    value: int
    added: int
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Priority:
    """The effective priority with its parts; `fault` names the tracks that forbid to take part."""

    value: int
    base: int
    parts: tuple[PriorityPart, ...]
    fault: tuple[str, ...]


def effective_priority(
    base: int,
    tracks: Iterable[Track],
    results: Mapping[str, TrackResult],
    *,
    unknown: MissingVerdict = MissingVerdict.FAULT,
) -> Priority:
    """Return the effective priority; `results` are by the track's name, without those without a verdict."""
    parts = tuple(_part(track, results.get(track.name)) for track in tracks)
    total = base + sum(part.added for part in parts)
    return Priority(
        value=OWNER if base == OWNER else min(max(total, 1), 254),
        base=base,
        parts=parts,
        fault=tuple(part.track for part in parts if _forbids(part, unknown)),
    )


def _forbids(part: PriorityPart, unknown: MissingVerdict) -> bool:
    if part.weight is not None:
        return part.added < LEAST
    return unknown is MissingVerdict.FAULT if part.up is None else not part.up


def _part(track: Track, result: TrackResult | None) -> PriorityPart:
    if result is None:
        return PriorityPart(track=track.name, weight=track.weight, up=None, value=0, added=0, detail="")
    return PriorityPart(
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
