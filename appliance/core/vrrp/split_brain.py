"""The other actives that an active hears and beats: once told, answered and announced at a pace.

All of it is bounded, whoever sends: valid advertisements of a lower priority can be made up by thousands.
"""

from typing import Final

ANNOUNCEMENT_PAUSE: Final = 1.0
"""Seconds between announcements while a rival goes on: one that cannot hear us may never stop."""


MOST_PEERS: Final = 32
"""Rivals that are told from one another at a time: senders can be made up."""

ANSWERS_PER_INTERVAL: Final = 10
"""Answers at most in an interval: one is heard by all that were active, and more are only for who floods."""

SHORTEST_ANSWER_PAUSE: Final = 0.01
"""Seconds between two answers at least, which is the shortest interval."""


class OtherActives:
    """The rivals of one tenure. An episode of a peer ends when it was quiet for a down interval."""

    __slots__ = ("_announced", "_expected", "_expected_until", "_last", "_owed", "answer_at")

    def __init__(self) -> None:
        self.answer_at = float("-inf")
        self._last: dict[str, float] = {}
        self._announced = float("-inf")
        self._owed = False
        self._expected: str | None = None
        self._expected_until = float("-inf")

    def expect(self, peer: str | None = None, *, until: float) -> None:
        """Note that a rival until then is no news: we have preempted it, or have offered to be relieved.

        Nor is the first advertisement of `peer` whenever it comes: the two may have crossed.
        """
        self._expected = peer
        self._expected_until = until

    def heard(self, peer: str, *, now: float, silence: float) -> bool:
        """Take an advertisement of a rival; True when it is news: nothing for `silence` before.

        Where there are too many, one more is no news: the others have been told.
        """
        self._owed = True
        expected = peer == self._expected or now < self._expected_until
        if peer == self._expected:
            self._expected = None
        if expected:
            return False  # and no episode: should it go on, that is news
        last = self._last.pop(peer, None)
        if last is None and not self._has_room(now - silence):
            return False
        self._last[peer] = now  # at the end: the first one was heard longest ago
        return last is None or now - last > silence

    def may_answer(self, now: float, *, interval: float) -> bool:
        """Whether one that asks for it is answered now; else the answer waits until `answer_at`."""
        if now < self.answer_at:
            return False
        self.answer_at = now + max(interval / ANSWERS_PER_INTERVAL, SHORTEST_ANSWER_PAUSE)
        return True

    def may_announce(self, now: float) -> bool:
        """Whether the addresses are to be announced now: some rival was heard, and the pace allows it."""
        if not self._owed or now - self._announced < ANNOUNCEMENT_PAUSE:
            return False
        self._owed = False
        self._announced = now
        return True

    def _has_room(self, silent_since: float) -> bool:
        """Forget who was heard longest ago, as far as its episode is over; say whether one more has room."""
        while len(self._last) >= MOST_PEERS:
            longest = next(iter(self._last))
            if self._last[longest] >= silent_since:
                return False
            del self._last[longest]
        return True
