"""Which processes hang: their heartbeat has not moved for a period of the watchdog's own time.

What a heartbeat says is a number that moves, so nobody's clock counts but the watchdog's monotonic one. Time
in which the watchdog itself did not run (the machine stood still, was suspended, or gave it no processor)
says nothing about the others: all begin a fresh period then. So they do, once, where all are late together:
that is the machine, and not each of them.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

LOOK: Final = 1.0
"""Seconds from one look to the next."""

START: Final = 60.0
"""Seconds that a process may take from its start to its first beat, where the period is shorter."""

_LATE: Final = 3.0  # seconds from one look to the next after which the watchdog was late itself
_TOGETHER: Final = 0.5  # of the period: who is silent for so long when one is found to hang is late with it


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatReading:
    """What a process's heartbeat says: a number that moves. `begun` is whether there was a first beat."""

    name: str
    pid: int
    beat: int
    begun: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class HungProcess:
    """A process that hangs, and for how many seconds it has shown no sign of life."""

    name: str
    pid: int
    silent: float


@dataclass(slots=True)
class _WatchedProcess:
    pulse: HeartbeatReading
    silent: float = 0.0

    def patience(self, period: float) -> float:
        return period if self.pulse.begun else max(period, START)


class Watchdog:
    """Told at each look what all heartbeats say."""

    def __init__(self) -> None:
        self._watched: dict[str, _WatchedProcess] = {}
        self._looked_at: float | None = None
        self._spared = False

    def look(
        self, pulses: Collection[HeartbeatReading], *, now: float, period: float
    ) -> tuple[HungProcess, ...]:
        """Return who hangs at `now` (monotonic seconds); who is told has a fresh period from then on."""
        elapsed = now - self._looked_at if self._looked_at is not None else 0.0
        self._looked_at = now
        self._listen(pulses, elapsed)
        if elapsed > _LATE:
            self._refresh()
            return ()
        hanging = [each for each in self._watched.values() if each.silent > each.patience(period)]
        if hanging and self._all_late(period) and not self._spared:
            self._spared = True
            self._refresh()
            return ()
        hung = tuple(
            HungProcess(name=each.pulse.name, pid=each.pulse.pid, silent=each.silent) for each in hanging
        )
        for each in hanging:
            each.silent = 0.0
        return hung

    def _listen(self, pulses: Collection[HeartbeatReading], elapsed: float) -> None:
        before, self._watched = self._watched, {}
        for pulse in pulses:
            known = before.get(pulse.name)
            if known is not None and known.pulse == pulse:
                known.silent += elapsed
                self._watched[pulse.name] = known
                continue
            self._watched[pulse.name] = _WatchedProcess(pulse)
            self._spared = self._spared and known is None  # somebody lives: the machine goes on

    def _all_late(self, period: float) -> bool:
        return len(self._watched) > 1 and all(
            each.silent > period * _TOGETHER for each in self._watched.values()
        )

    def _refresh(self) -> None:
        for each in self._watched.values():
            each.silent = 0.0
