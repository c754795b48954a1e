"""When a server is checked: HAProxy's `inter`, `fastinter`, `downinter` and `spread-checks`.

Checks of all servers at the same moment would make a burst of packets and handshakes here, and on a machine
that runs several of the servers. So each server has its own place in the interval, its `phase`. HAProxy's
`spread-checks` adds a random time to each interval; a fixed place keeps the pauses exact, so that the longest
time to find a dead server is known. A few servers share a place: a process that wakes up for one check finds
its caches cold; of seven at once each takes two thirds of the time.
"""

import math
import zlib
from dataclasses import dataclass
from typing import Final

from appliance.model.server_weights import OperatorWeight, asked_weight
from appliance.model.snapshot.pools import Check, Pool, Server

_TOGETHER: Final = 8  # servers that share a place, in the mean
_TOO_SOON: Final = 0.05  # parts of an interval: two checks are not closer, if the first one was late or early


def places(servers: int) -> int:
    """Return the number of places in an interval: a power of two, so that few reloads change it."""
    return 1 << (max(servers - 1, 0) // _TOGETHER).bit_length()


def phase(pool: str, server: str, *, places: int = 1) -> float:
    """Return a place in [0, 1): always the same for a server, and evenly spread over many."""
    return (zlib.crc32(f"{pool}/{server}".encode()) * places >> 32) / places


def pause(check: Check, *, passed: bool, in_question: bool) -> float:
    """Return the seconds from the start of a check to that of the next one.

    `passed` is its result, `in_question` whether the results so far may lead to another verdict: then
    `fast_interval` counts (HAProxy's `fastinter`, for a server that is going up or going down).
    """
    if in_question:
        return check.fast_interval
    return check.interval if passed else check.down_interval


class CheckSchedule:
    """When the next check of one server is `due`; None if none is planned."""

    __slots__ = ("_asked_by_clients_at", "_clients_ask", "due")

    def __init__(self) -> None:
        self.due: float | None = None
        self._clients_ask = False
        self._asked_by_clients_at = -math.inf

    def first(self, at: float | None) -> None:
        """Plan the next check for a moment that depends on no earlier one; None for no check."""
        self.due = at

    def check_started(self, now: float) -> None:
        """Store that a check begins: it serves the clients that failed so far; later ones need another."""
        if self._clients_ask:
            self._clients_ask = False
            self._asked_by_clients_at = now

    def check_ended(
        self, check: Check, *, passed: bool, in_question: bool, started: float, now: float, place: float
    ) -> None:
        """Plan the next check; `place` is the server's phase, `started` is when the one that ended began.

        A client that failed while the check ran may know more than the check: the next one is made soon.
        """
        in_question = in_question or self._clients_ask
        seconds = pause(check, passed=passed, in_question=in_question)
        # From start to start, as in HAProxy: a slow check does not make the next one later.
        due = started + seconds
        if not in_question:  # counted on the clock: from the last start, late timers would move it
            due -= (due - place * seconds) % seconds
            if due - started < _TOO_SOON * seconds:
                due += seconds
        self.due = max(due, now)

    def connect_failed(self, check: Check, now: float) -> bool:
        """Plan a check at once, because clients cannot connect; True if it is earlier than the planned one.

        This is HAProxy's `observe layer4` with `on-error fastinter`. However many clients fail, only one
        check per `fast_interval` is made for them, so that they cannot make us flood the server.
        """
        if self.due is None:
            return False
        self._clients_ask = True
        soonest = max(now, self._asked_by_clients_at + check.fast_interval)
        if soonest >= self.due:
            return False
        self.due = soonest
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSettings:
    """The combined settings of a pool and of one of its servers.

    `check` is None for a server that is never checked and always up. `slow_start` is in seconds, 0.0 for
    none. `weight` is the operator's if there is one. `phase` is the server's place in its check interval, in
    [0, 1).
    """

    check: Check | None
    weight: float
    slow_start: float
    phase: float


def health_settings(
    pool: Pool, server: Server, weight: OperatorWeight | None = None, *, places: int = 1
) -> HealthSettings:
    """Return the settings of a server; `weight` is the operator's, `places` are those of an interval."""
    return HealthSettings(
        check=server.check,
        weight=asked_weight(server.weight, weight),
        slow_start=pool.slow_start,
        phase=phase(pool.name, server.name, places=places),
    )
