"""The other actives that an active hears and beats: once told, answered always, announced at a pace."""

from typing import Final

PACE: Final = 1.0
"""Seconds between announcements while a rival goes on: one that cannot hear us may never stop."""


class Rivalry:
    """The rivals of one tenure. An episode of a peer ends when it was quiet for a down interval."""

    __slots__ = ("_announced", "_expected_until", "_last", "_owed")

    def __init__(self) -> None:
        self._last: dict[str, float] = {}
        self._announced = float("-inf")
        self._owed = False
        self._expected_until = float("-inf")

    def expect(self, *, until: float) -> None:
        """Note that a rival until then is no news: we have preempted it, or have offered to be relieved."""
        self._expected_until = until

    def heard(self, peer: str, *, now: float, silence: float) -> bool:
        """Take an advertisement of a rival; True when it is news: nothing for `silence` before."""
        self._last = {rival: at for rival, at in self._last.items() if now - at <= silence}
        begins = peer not in self._last
        self._last[peer] = now
        self._owed = True
        return begins and now >= self._expected_until

    def announces(self, now: float) -> bool:
        """Whether the addresses are to be announced now: some rival was heard, and the pace allows it."""
        if not self._owed or now - self._announced < PACE:
            return False
        self._owed = False
        self._announced = now
        return True
