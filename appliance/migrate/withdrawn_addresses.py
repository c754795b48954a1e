"""The shared addresses that this node has left, as `announce` reports them."""

from ipaddress import ip_interface
from typing import Final

from appliance.core.announce.announce_or_withdraw import LEAVES, SharedState
from appliance.model.paths import Paths
from appliance.model.program_names import ANNOUNCE
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.control.control_client import status_of
from appliance.wire.lines.announce_status import AnnounceStatus

_PAUSE: Final = 1.0  # seconds between two questions
_ANSWERED: Final = 2.0


class WithdrawnAddresses:
    """Those left, in `addresses`; once `announce` has stopped, all that it was leaving."""

    def __init__(self, paths: Paths) -> None:
        self.addresses: frozenset[str] = frozenset()
        self._announce = paths.control(ANNOUNCE)
        self._leaving: frozenset[str] = frozenset()
        self._due = float("-inf")

    def look(self, snapshot: Snapshot | None, now: float, *, at_once: bool = False) -> None:
        """Ask `announce` if it is time, or at once."""
        if snapshot is None or not snapshot.shared_ips:
            self.addresses = self._leaving = frozenset()
        elif at_once or now >= self._due:
            self._due = now + _PAUSE
            status = status_of(self._announce, AnnounceStatus, timeout=_ANSWERED)
            if status is None:
                self.addresses = self._leaving
                return
            leaving = {
                str(ip_interface(address).ip): each.state
                for each in status.addresses
                if each.reason == LEAVES
                for address in each.addresses
            }
            self._leaving = frozenset(leaving)
            self.addresses = frozenset(
                address for address, state in leaving.items() if state == SharedState.WITHDRAWN
            )
