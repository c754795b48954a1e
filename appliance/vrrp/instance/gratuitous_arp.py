"""Sends the gratuitous ARPs or unsolicited neighbour advertisements of one instance when they are due.

RFC 9568 section 6.4.2 has a new active announce its addresses once. Switches and neighbours may miss that, so
announcements are repeated (`core.vrrp.announcement_times`), and frames that the interface cannot take at once
are sent a little later (`net.packets.frame_queue`).
"""

from collections.abc import Callable

from appliance.core.vrrp.announcement_times import AnnouncementTimes
from appliance.model.snapshot.virtual_router import AnnounceSettings
from appliance.vrrp.instance.counters import RouterCounters
from appliance.vrrp.instance.faults import RefusedOperation
from appliance.vrrp.sockets.instance_sockets import InstancePort


class GratuitousArp:
    """Announces by the sockets of `port`; `on_error` is called with the operation that the kernel refused."""

    def __init__(
        self,
        settings: AnnounceSettings,
        port: InstancePort,
        counters: RouterCounters,
        *,
        on_error: Callable[[RefusedOperation, OSError], None],
    ) -> None:
        self._times = AnnouncementTimes(settings)
        self._port = port
        self._counters = counters
        self._on_error = on_error

    @property
    def deadline(self) -> float | None:
        """Return when the next announcement, or the rest of the last one, is due."""
        at, opened = self._times.deadline, self._port.open_port
        rest = opened.announcing.deadline if opened else None
        if rest is None or (at is not None and at < rest):
            return at
        return rest

    def begin(self, repeat: int, now: float) -> None:
        """Announce every address `repeat` times now, and schedule the repetitions."""
        self.announce(repeat, now)
        self._times.plan(now)

    def keep(self, now: float) -> None:
        """Announce nothing now, but refresh from now on."""
        self._times.plan_refresh(now)

    def announce(self, repeat: int, now: float) -> None:
        """Announce every address `repeat` times now."""
        if self._port.open_port is None:
            return
        try:
            self._counters.gratuitous_sent += self._port.open_port.announce(repeat, now)
        except OSError as error:
            self._on_error(RefusedOperation.ANNOUNCE, error)

    def end(self) -> None:
        """Send no more announcements: the addresses are gone."""
        self._times.cancel()
        if self._port.open_port is not None:
            self._port.open_port.announcing.clear()

    def reconfigure(self, settings: AnnounceSettings, now: float) -> None:
        """Use other settings for the repetitions."""
        self._times.change_settings(settings, now)

    def tick(self, now: float, *, leaving: bool) -> None:
        """Send what is due.

        Nothing is sent while `leaving`: the successor may already have announced itself, and an announcement
        of ours would bring its clients back.
        """
        if (repeat := self._times.due(now)) and not leaving:
            self.announce(repeat, now)
        opened = self._port.open_port
        if opened is None or (at := opened.announcing.deadline) is None or now < at:
            return
        if leaving:
            opened.announcing.clear()
            return
        try:
            self._counters.gratuitous_sent += opened.announcing.tick(now)
        except OSError as error:
            self._on_error(RefusedOperation.ANNOUNCE, error)
