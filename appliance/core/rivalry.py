"""The other actives that an active hears and beats: once told, answered always, announced at a pace."""

from typing import Final

PACE: Final = 1.0
"""Seconds between announcements while a rival goes on: one that cannot hear us may never stop."""


class Rivalry:
    """The rivals of one tenure. An episode of a peer ends when it was quiet for a down interval."""

    __slots__ = ("_announced", "_expected", "_expected_until", "_last", "_owed")

    def __init__(self) -> None:
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
        """Take an advertisement of a rival; True when it is news: nothing for `silence` before."""
        self._last = {rival: at for rival, at in self._last.items() if now - at <= silence}
        self._owed = True
        expected = peer == self._expected or now < self._expected_until
        if peer == self._expected:
            self._expected = None
        if expected:
            return False  # and no episode: should it go on, that is news
        begins = peer not in self._last
        self._last[peer] = now
        return begins

    def announces(self, now: float) -> bool:
        """Whether the addresses are to be announced now: some rival was heard, and the pace allows it."""
        if not self._owed or now - self._announced < PACE:
            return False
        self._owed = False
        self._announced = now
        return True
