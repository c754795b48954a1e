"""The times of a rollout, in seconds: the configured ones for draining, and fixed ones."""

from dataclasses import dataclass
from typing import Final

NO_DEADLINE: Final = 10 * 365 * 86400.0
"""Seconds of a drain that lasts until its last session ends, whenever that is: a soft stop's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainSettings:
    """The drain settings of the accepted snapshot.

    `drain` is the seconds that sessions have to end, `max_draining` the number of generations that may drain
    at a time (HAProxy's `hard-stop-after` and `mworker-max-reloads`).
    """

    drain: float
    max_draining: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long the master waits for workers, in seconds.

    `startup`: for a new worker to be ready. One that fails reports it at once, so this is only for one that
    hangs; a slow machine, at its first start with cold disks, must not reach it. `accept`: for a ready worker
    to report that it accepts. `move`: for an older generation to transfer its sessions and end, before the
    workers of another one are started. `kill_grace`: from the end of a drain to SIGKILL. `backoff_first`:
    before the second replacement of a worker that died, and before a refused snapshot is sent again; it
    doubles each time up to `backoff_longest`. A worker that accepted for `stable` seconds is replaced without
    delay. `silence`: for a worker that does not answer after the take-over, before it is killed.
    """

    startup: float = 90.0
    accept: float = 15.0
    move: float = 2.0
    kill_grace: float = 5.0
    backoff_first: float = 0.1
    backoff_longest: float = 5.0
    stable: float = 10.0
    silence: float = 30.0

    def backoff(self, failures: int) -> float:
        """Return the seconds to wait after so many failures in a row; 0.0 after none."""
        if not failures:
            return 0.0
        # The exponent is bounded, as a float overflows after some 1000 doublings.
        return float(min(self.backoff_longest, self.backoff_first * 2.0 ** min(failures - 1, 16)))
