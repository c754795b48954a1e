"""What one virtual router knows of others that use its router id or its addresses in another way.

Before its first claim that may keep it from claiming, as the operator's `on_conflict` says; after it the log
and the status tell it.
"""

import time
from collections.abc import Callable, Collection

from structlog.typing import FilteringBoundLogger

from appliance.core.conflicts import Conflict, Conflicts
from appliance.model.virtual_router import VirtualRouter
from appliance.net.loop.closer import Closer
from appliance.net.loop.loop import Loop
from appliance.vrrp.address_watch import AddressWatch
from appliance.vrrp.advert_intake import Deviation, Dropped
from appliance.wire.vrrp import Drop


class RouterCaution:
    """The conflicts of one virtual router; `on_alarm` is called with its name whenever one is seen."""

    def __init__(self, router: VirtualRouter, log: FilteringBoundLogger) -> None:
        self.conflicts = Conflicts(router.on_conflict, advert=router.advert)
        self.on_alarm: Callable[[str], None] | None = None
        self._router = router
        self._log = log
        self._watch: AddressWatch | None = None

    @property
    def deadline(self) -> float | None:
        """Return when the addresses are asked for next."""
        return self._watch.deadline if self._watch else None

    def tick(self, now: float) -> None:
        """Ask for the addresses, if that is due."""
        if self._watch is not None and (at := self._watch.deadline) is not None and now >= at:
            self._watch.tick(now)

    def revise(self, router: VirtualRouter) -> None:
        """Take another policy; what was refused may be tried again."""
        self._router = router
        self.conflicts.policy, self.conflicts.advert = router.on_conflict, router.advert
        self.conflicts.refused = False

    def watch(self, *, mac: bytes, loop: Loop, closer: Closer, now: float) -> None:
        """Ask whether somebody else has the addresses, until there is an active; raises OSError."""
        if self._watch is None:
            self._watch = AddressWatch(
                self._router, loop=loop, closer=closer, mac=mac, now=now, on_answer=self._answered
            )

    def valid(self, *, interval: float, now: float) -> None:
        """Note a valid advertisement: there is an active, whose answers are as they should be."""
        self.conflicts.valid(interval=interval, now=now)
        if self._watch is not None:
            self.close()

    def claimed(self) -> None:
        """Note that this router has become active: from now on a conflict is only told."""
        self.conflicts.claimed()
        self.close()

    def dropped(self, dropped: Dropped) -> None:
        """Take an advertisement with our router id that was not used."""
        said = dropped.said
        if said is None and dropped.reason is Drop.VERSION:
            return  # no version of VRRP at all: damage, whose checksum nobody has looked at
        conflict = self.conflicts.dropped(
            dropped.reason,
            peer=dropped.peer,
            detail=f"version {said.version}, {', '.join(said.addresses)}" if said else "",
            interval=said.interval if said else 0.0,
            now=time.monotonic(),
        )
        self._alarm(conflict)

    def deviated(self, deviation: Deviation) -> None:
        """Take an advertisement that was used all the same: that is only told."""
        said = deviation.said
        self._tell(
            self.conflicts.deviated(
                deviation.reason,
                peer=deviation.peer,
                detail=f"version {said.version}, {', '.join(said.addresses)}",
                interval=said.interval,
                now=time.monotonic(),
            )
        )

    def foreign(self, places: Collection[tuple[str, str]]) -> None:
        """Take on which interfaces somebody else has which of our addresses now, and tell each new one."""
        for conflict in self.conflicts.foreign(places, now=time.monotonic()):
            self._tell(conflict)

    def close(self) -> None:
        """Ask no more; harmless when repeated."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def _answered(self, mac: str, address: str) -> None:
        interval = self._watch.interval if self._watch else 0.0
        now = time.monotonic()
        self._alarm(self.conflicts.answered(mac, address=address, interval=interval, now=now))

    def _alarm(self, conflict: Conflict | None) -> None:
        """Tell a conflict that is new, and have it looked at in any case."""
        self._tell(conflict)
        if self.on_alarm is not None:
            self.on_alarm(self._router.name)

    def _tell(self, conflict: Conflict | None) -> None:
        if conflict is not None:
            self._log.warning(
                "address-conflict",
                router=self._router.name,
                kind=conflict.kind.value,
                peer=conflict.peer,
                detail=conflict.detail,
            )
