"""When gratuitous ARPs and NAs are sent: keepalived's `garp_master_delay`, `_repeat` and `_refresh`.

`AnnounceAddresses` is performed at once; this is the schedule of the announcements that follow it. The first
one, 0.1 s later, is ours and not keepalived's: after a split brain, the loser's announcement may be the last
one that the switches have seen.
"""

from typing import Final

from appliance.model.snapshot.virtual_router import AnnounceSettings

FIRST_REPEAT: Final = 0.1
"""Seconds from the first announcement to its only repetition."""


class AnnouncementTimes:
    """The planned announcements of one virtual router; `deadline` is None if there are none."""

    __slots__ = ("_delayed", "_planned", "_refresh", "_repeat", "settings")

    def __init__(self, settings: AnnounceSettings) -> None:
        self.settings = settings
        self._planned = False
        self._repeat: float | None = None
        self._delayed: float | None = None
        self._refresh: float | None = None

    @property
    def deadline(self) -> float | None:
        """When the next announcement is due."""
        return min(
            (at for at in (self._repeat, self._delayed, self._refresh) if at is not None), default=None
        )

    def plan(self, now: float) -> None:
        """Plan the announcements that follow an `AnnounceAddresses` performed now."""
        self._planned = True
        self._repeat = now + FIRST_REPEAT
        self._delayed = now + self.settings.delay if self.settings.delay > 0 else None
        self._refresh = self._next_refresh(now)

    def plan_refresh(self, now: float) -> None:
        """Plan announcements after a start that announces nothing: switches and neighbours are up to date."""
        self._planned = True
        self._refresh = self._next_refresh(now)

    def cancel(self) -> None:
        """Cancel all announcements: the addresses were removed."""
        self._planned = False
        self._repeat = self._delayed = self._refresh = None

    def change_settings(self, settings: AnnounceSettings, now: float) -> None:
        """Use new settings; only the refresh is rescheduled."""
        before, self.settings = self.settings, settings
        if self._planned and before.refresh != settings.refresh:
            self._refresh = self._next_refresh(now)

    def due(self, now: float) -> int:
        """Return how many announcements to send now for each address, 0 for none; plan the next ones."""
        repeats = [0]
        if self._repeat is not None and now >= self._repeat:
            self._repeat = None
            repeats.append(1)
        if self._delayed is not None and now >= self._delayed:
            self._delayed = None
            repeats.append(self.settings.repeat)
        if self._refresh is not None and now >= self._refresh:
            self._refresh = self._next_refresh(now)
            repeats.append(self.settings.refresh_repeat)
        return max(repeats)

    def _next_refresh(self, now: float) -> float | None:
        return now + self.settings.refresh if self.settings.refresh > 0 else None
