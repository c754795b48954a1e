"""When a server is checked: HAProxy's `inter`, `fastinter`, `downinter` and `spread-checks`.

Checks of all servers at the same moment would make a burst of packets and handshakes here, and on a machine
that runs several of the servers. So each server has a place of its own in the interval, its `phase`.
HAProxy's `spread-checks` adds something random to each interval; a fixed place keeps the pauses exact, so
that it can be said how long it takes at most until a dead server is found.
"""

import math
import zlib

from appliance.model.snapshot.pools import Check


def phase(pool: str, server: str) -> float:
    """Return the same place in (0, 1] for the same server always, and places spread evenly over many."""
    return (zlib.crc32(f"{pool}/{server}".encode()) + 1) / (1 << 32)


def pause(check: Check, *, passed: bool, in_question: bool) -> float:
    """Return the seconds from the start of a check to that of the next one.

    `passed` is how it ended, `in_question` whether the results so far may be on their way to another verdict:
    then `fast_interval` counts (HAProxy's `fastinter`, for a server that is going up or going down).
    """
    if in_question:
        return check.fast_interval
    return check.interval if passed else check.down_interval


class CheckSchedule:
    """When the next check of one server is `due`; None while none is to be made."""

    __slots__ = ("_asked_by_clients_at", "_clients_ask", "_in_place", "due")

    def __init__(self) -> None:
        self.due: float | None = None
        self._in_place = False
        self._clients_ask = False
        self._asked_by_clients_at = -math.inf

    def first(self, at: float | None) -> None:
        """Have the next check made at a moment that depends on no earlier one; None for no check."""
        self.due = at

    def leave_place(self) -> None:
        """Forget the server's place in the interval, which is another one now."""
        self._in_place = False

    def check_started(self, now: float) -> None:
        """Note that a check begins: it answers the clients that failed up to now, later ones want another."""
        if self._clients_ask:
            self._clients_ask = False
            self._asked_by_clients_at = now

    def check_ended(
        self, check: Check, *, passed: bool, in_question: bool, started: float, now: float, place: float
    ) -> None:
        """Plan the next check; `place` is the server's phase, `started` is when the one that ended began.

        A client that failed while the check ran may know more than the check: the next one is made soon.
        """
        seconds = pause(check, passed=passed, in_question=in_question or self._clients_ask)
        # The first checks of all servers come close together; the second ones find their place.
        if not self._in_place:
            self._in_place = True
            seconds *= place
        # From start to start, as in HAProxy: a slow check does not make the next one later.
        self.due = max(started + seconds, now)

    def connect_failed(self, check: Check, now: float) -> bool:
        """Plan a check at once, because clients cannot connect; True when it is earlier than the planned one.

        This is HAProxy's `observe layer4` with `on-error fastinter`. However many clients fail, only one
        check for each `fast_interval` is made for them, so that they cannot make us flood the server.
        """
        if self.due is None:
            return False
        self._clients_ask = True
        soonest = max(now, self._asked_by_clients_at + check.fast_interval)
        if soonest >= self.due:
            return False
        self.due = soonest
        return True
