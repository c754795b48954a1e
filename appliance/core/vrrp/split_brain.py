"""Other actives that lose against this active: when to report, answer and announce.

All of it is bounded, whoever sends: valid advertisements of a lower priority can be forged by the thousand.
"""

from typing import Final

from appliance.core.vrrp.timers import SHORTEST_ADVERT

ANNOUNCEMENT_PAUSE: Final = 1.0
"""Seconds between two announcements against another active: one that cannot receive ours may never stop."""

MOST_PEERS: Final = 32
"""Other actives that are tracked at a time."""

ANSWERS_PER_INTERVAL: Final = 10
"""At most this many answers in an interval. All others receive one; more would only help a flood."""

SHORTEST_ANSWER_PAUSE: Final = SHORTEST_ADVERT
"""Least seconds between two answers."""


class OtherActives:
    """The other actives that have advertised since this router became active.

    A split brain with one peer is reported once; it is over when that peer was silent for an
    Active_Down_Interval. `answer_at` is when the next answer may be sent.
    """

    __slots__ = ("_announced", "_expected", "_expected_until", "_last", "_owed", "answer_at")

    def __init__(self) -> None:
        self.answer_at = float("-inf")
        self._last: dict[str, float] = {}
        self._announced = float("-inf")
        self._owed = False
        self._expected: str | None = None
        self._expected_until = float("-inf")

    def expect(self, peer: str | None = None, *, until: float) -> None:
        """Report no other active until then: this router has preempted one, or has offered its addresses.

        The first advertisement of `peer` is never reported: it may have been sent before ours arrived.
        """
        self._expected = peer
        self._expected_until = until

    def store(self, peer: str, *, now: float, silence: float) -> bool:
        """Store another active; return whether to report it, as it was silent for `silence` seconds.

        If `MOST_PEERS` are stored already, one more is not reported: the split brain is known.
        """
        self._owed = True
        expected = peer == self._expected or now < self._expected_until
        if peer == self._expected:
            self._expected = None
        if expected:
            return False  # not stored: if this peer continues, that is reported
        last = self._last.pop(peer, None)
        if last is None and not self._has_room(now - silence):
            return False
        self._last[peer] = now  # at the end: the first entry is the oldest
        return last is None or now - last > silence

    def may_answer(self, now: float, *, interval: float) -> bool:
        """Return whether to answer an advertisement now; otherwise the answer waits until `answer_at`."""
        if now < self.answer_at:
            return False
        self.answer_at = now + max(interval / ANSWERS_PER_INTERVAL, SHORTEST_ANSWER_PAUSE)
        return True

    def may_announce(self, now: float) -> bool:
        """Return whether to announce the addresses now because of another active; not too often."""
        if not self._owed or now - self._announced < ANNOUNCEMENT_PAUSE:
            return False
        self._owed = False
        self._announced = now
        return True

    def _has_room(self, silent_since: float) -> bool:
        """Forget peers that have been silent since then; return whether there is room for one more."""
        while len(self._last) >= MOST_PEERS:
            longest = next(iter(self._last))
            if self._last[longest] >= silent_since:
                return False
            del self._last[longest]
        return True
