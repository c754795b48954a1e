"""Which processes hang: their heartbeat has not moved for a period of the watchdog's own time.

A heartbeat is a number that moves while the main loop of its process runs. Only whether it has moved counts,
by the watchdog's monotonic clock, so no other process's clock can be wrong.

Time in which the watchdog itself did not run says nothing about the others: the machine was suspended, or
gave it no processor. Then all processes begin a new period. They also do so, once, if all are late together:
the cause is the machine, and not each of them. Nor does time count in which a process was ready to run and
other processes had the processors: killed, it would have to do again what it had nearly finished.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from appliance.core.program_table import PROGRAMS

LOOK: Final = 1.0
"""Seconds from one look at the heartbeats to the next."""

START: Final = 60.0
"""Seconds that a process may take from its start to its first beat, if the period is shorter."""

SOONER: Final = {each.name: each.hangs_after for each in PROGRAMS if each.hangs_after is not None}
"""Seconds for which a program may hang if the period is longer: others cannot wait longer for it."""

STARVED: Final = 60.0
"""Seconds for which a process may wait for a processor in addition."""

_LATE: Final = 3.0
"""Seconds between two looks from which on the watchdog itself was late."""

_TOGETHER: Final = 0.5
"""Part of the period: a process that was silent that long when another one hangs is late with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatReading:
    """The heartbeat of a process at one look.

    `beat` moves from one look to the next while the process is well. `begun` is whether there was a first
    beat: before it the process is still starting.
    """

    name: str
    pid: int
    beat: int
    begun: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class HungProcess:
    """A process that hangs, and for how many seconds its heartbeat has not moved."""

    name: str
    pid: int
    silent: float


@dataclass(slots=True)
class _WatchedProcess:
    """A process at its last look: its heartbeat stood for `stood` seconds, `silent` ones without the waits.

    `waits` are the seconds for which it has waited for a processor since its start; None if not known.
    """

    reading: HeartbeatReading
    stood: float = 0.0
    silent: float = 0.0
    waits: float | None = None

    def stand(self, elapsed: float, waits: float) -> None:
        """Count a look at which the heartbeat has not moved."""
        # The kernel counts a wait when it ends: perhaps it began before the last look.
        waited = 0.0 if self.waits is None else waits - self.waits
        self.silent = max(0.0, self.silent + elapsed - waited)
        self.stood += elapsed
        self.waits = waits

    def hangs(self, period: float) -> bool:
        limit = min(period, SOONER.get(self.reading.name, period))
        if not self.reading.begun:
            limit = max(period, START)
        return self.silent > limit or self.stood > limit + STARVED

    def begin_new_period(self) -> None:
        self.stood = self.silent = 0.0


class Watchdog:
    """Compares the readings of one look with those of the look before.

    `waits` returns for how many seconds a process has been ready and waited for a processor since its start.
    """

    def __init__(self, waits: Callable[[int], float]) -> None:
        self._waits = waits
        self._watched: dict[str, _WatchedProcess] = {}
        self._looked_at: float | None = None
        self._all_spared = False
        """Whether all were late together once, and none of them has continued since."""

    def look(
        self, readings: Collection[HeartbeatReading], *, now: float, period: float
    ) -> tuple[HungProcess, ...]:
        """Return the processes that hang at `now`, in monotonic seconds; each thereby begins a new period.

        `period` is the seconds for which a heartbeat may stand still (the option `watchdog`).
        """
        elapsed = now - self._looked_at if self._looked_at is not None else 0.0
        self._looked_at = now
        self._compare(readings, elapsed)
        if elapsed > _LATE:
            self._begin_new_periods()
            return ()
        hanging = [each for each in self._watched.values() if each.hangs(period)]
        if hanging and self._all_late(period) and not self._all_spared:
            self._all_spared = True
            self._begin_new_periods()
            return ()
        hung = tuple(
            HungProcess(name=each.reading.name, pid=each.reading.pid, silent=each.stood) for each in hanging
        )
        for each in hanging:
            each.begin_new_period()
        return hung

    def _compare(self, readings: Collection[HeartbeatReading], elapsed: float) -> None:
        before, self._watched = self._watched, {}
        for reading in readings:
            known = before.get(reading.name)
            if known is not None and known.reading == reading:
                known.stand(elapsed, self._waits(reading.pid))
                self._watched[reading.name] = known
                continue
            self._watched[reading.name] = _WatchedProcess(reading)
            # A known process continues: the machine works again, and may be late again another day.
            self._all_spared = self._all_spared and known is None

    def _all_late(self, period: float) -> bool:
        return len(self._watched) > 1 and all(
            each.silent > period * _TOGETHER for each in self._watched.values()
        )

    def _begin_new_periods(self) -> None:
        for each in self._watched.values():
            each.begin_new_period()
