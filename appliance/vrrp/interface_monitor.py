"""Passes netlink's reports on interfaces to VRRP instances, and restores addresses that others removed."""

import time
from typing import Final

from structlog.typing import FilteringBoundLogger

from appliance.net.netlink.links import LinkChange, LinkEvent, Links
from appliance.vrrp.groups.router_group import RouterGroup
from appliance.vrrp.groups.router_groups import RouterGroups
from appliance.vrrp.instance.vrrp_instance import VrrpInstance
from appliance.vrrp.tracks import Tracks

_RETRY: Final = 1.0  # seconds until the kernel is asked for its interfaces again
_WITHOUT_ADDRESSES: Final = frozenset({LinkChange.APPEARED, LinkChange.DISAPPEARED})


class InterfaceMonitor:
    """Reads `links` for the instances in `groups`; `retry_at` is when to call `tick` after an error."""

    def __init__(self, links: Links, groups: RouterGroups, tracks: Tracks, log: FilteringBoundLogger) -> None:
        self.log = log
        self.retry_at: float | None = None
        self._links = links
        self._groups = groups
        self._tracks = tracks
        self._damage_logged = False

    def readable(self) -> None:
        """Read the messages of netlink: the loop's callback."""
        self._read(time.monotonic())

    def tick(self, now: float) -> None:
        """Retry a failed read, if that is due."""
        if self.retry_at is not None and now >= self.retry_at:
            self.retry_at = None
            self._read(now)

    def _read(self, now: float) -> None:
        try:
            events = self._links.read()
        except OSError as error:
            reason = error.strerror or str(error)
            self.log.error("interfaces-unread", reason=reason)  # noqa: TRY400  # the kernel's refusal, no bug
            self.retry_at = now + _RETRY
            return
        if self._links.damaged and not self._damage_logged:
            self._damage_logged = True
            self.log.error("netlink-damaged", count=self._links.damaged)
        self._distribute(events, now)

    def _distribute(self, events: list[LinkEvent], now: float) -> None:
        names = {event.name for event in events}
        changed = {event.address.partition("/")[0] for event in events}
        # When an interface appears or disappears, no event reports its addresses.
        any_address = any(event.change in _WITHOUT_ADDRESSES for event in events)
        removed = {
            (event.name, event.address) for event in events if event.change is LinkChange.ADDRESS_REMOVED
        }
        # Leaving ones too: they hold addresses until a successor's advert arrives.
        for group in (*self._groups, *self._groups.leaving):
            for each in group.instances.values():
                if any_address or changed & each.virtual:
                    each.find_foreign_addresses(now)
                if names & {each.router.interface, _address_interface(each), *each.router.other_interfaces}:
                    link = self._links.state(each.router.interface)
                    if each.concerns(link):
                        group.update_link(each, link, now)
                    self._restore(group, each, removed, now)
                if self._tracks.update_interfaces(each):
                    group.update_priority(each, now)

    def _restore(
        self, group: RouterGroup, instance: VrrpInstance, removed: set[tuple[str, str]], now: float
    ) -> None:
        """Restore the addresses of an active that another program removed, and log it."""
        lost = [address for at, address in instance.holder.addresses if (at, address) in removed]
        if lost and group.restore(instance, len(lost), now):
            self.log.warning("address-restored", router=instance.name, addresses=lost)


def _address_interface(instance: VrrpInstance) -> str:
    """Return the name of the interface that carries the addresses, "" before there is one."""
    return instance.holder.interface.name if instance.holder.interface else ""
