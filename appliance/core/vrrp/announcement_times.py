"""When the addresses of an active are announced: keepalived's `garp_master_delay`, `_repeat` and `_refresh`.

An Announce effect is performed at once; this is the schedule of what follows it. One more announcement comes
an instant later, which keepalived does not make: after a conflict the loser's own announcement may be the
last one that the switches have seen.
"""

from typing import Final

from appliance.model.snapshot.virtual_router import AnnounceSettings

ECHO: Final = 0.1
"""Seconds after an announcement until it is said once more."""


class AnnouncementTimes:
    """The announcements of one virtual router that are to come; `deadline` None is none."""

    __slots__ = ("_begun", "_delayed", "_echo", "_refresh", "terms")

    def __init__(self, terms: AnnounceSettings) -> None:
        self.terms = terms
        self._begun = False
        self._echo: float | None = None
        self._delayed: float | None = None
        self._refresh: float | None = None

    @property
    def deadline(self) -> float | None:
        """When the next announcement is due."""
        return min((at for at in (self._echo, self._delayed, self._refresh) if at is not None), default=None)

    def begin(self, now: float) -> None:
        """Plan what follows the announcement that an Announce effect has just asked for."""
        self._begun = True
        self._echo = now + ECHO
        self._delayed = now + self.terms.delay if self.terms.delay > 0 else None
        self._refresh = self._next_refresh(now)

    def end(self) -> None:
        """Forget all of it: the addresses are gone."""
        self._begun = False
        self._echo = self._delayed = self._refresh = None

    def revise(self, terms: AnnounceSettings, now: float) -> None:
        """Take new settings; what is planned stays, but for the refresh."""
        before, self.terms = self.terms, terms
        if self._begun and before.refresh != terms.refresh:
            self._refresh = self._next_refresh(now)

    def due(self, now: float) -> int:
        """Return how many times each address is to be announced now, and plan the next time; 0 is not now."""
        repeats = [0]
        if self._echo is not None and now >= self._echo:
            self._echo = None
            repeats.append(1)
        if self._delayed is not None and now >= self._delayed:
            self._delayed = None
            repeats.append(self.terms.repeat)
        if self._refresh is not None and now >= self._refresh:
            self._refresh = self._next_refresh(now)
            repeats.append(self.terms.refresh_repeat)
        return max(repeats)

    def _next_refresh(self, now: float) -> float | None:
        return now + self.terms.refresh if self.terms.refresh > 0 else None
