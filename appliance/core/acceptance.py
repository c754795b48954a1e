"""Which programs a configuration needs, and what a change from one to the next asks of them."""

from dataclasses import dataclass
from typing import Final

from appliance.model.snapshot import Snapshot

PROGRAMS: Final = ("health", "proxy-api", "proxy-ingress")
"""Every program that a configuration can need."""

STOP_MARGIN: Final = 5
"""Seconds that a proxy has beyond its drain time before supervisord kills it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Programs in the order of commits: `health` first, so that a new generation finds its servers' verdicts.

    `prepare` holds all that the old configuration needed, `stop` those of them that the new one does not:
    they are prepared and committed too, which drains them. `start` holds those that only the new one needs.
    """

    prepare: tuple[str, ...]
    start: tuple[str, ...]
    stop: tuple[str, ...]


def needed(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the programs that have something to do, `health` first."""
    health = ("health",) if snapshot.pools else ()
    return health + tuple(sorted(group.program for group in snapshot.groups))


def plan(old: Snapshot, new: Snapshot) -> Plan:
    """Return what going from `old` to `new` asks of the programs."""
    before, after = needed(old), needed(new)
    return Plan(
        prepare=tuple(sorted(before, key=lambda each: each not in after)),
        start=tuple(each for each in after if each not in before),
        stop=tuple(each for each in before if each not in after),
    )
