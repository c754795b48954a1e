"""Where the addresses of one virtual router are put: on its interface, or on a virtual MAC's of its own."""

from collections.abc import Iterable

from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.net.netlink import virtual_mac
from appliance.net.netlink.addresses import Addresses, Taken
from appliance.net.netlink.links import Link
from appliance.net.netlink.netlink import Requests


class AddressInterface:
    """One interface that takes and releases addresses; `name`, `index` and `mac` are that interface's.

    `source` is what advertisements come from. Raises OSError when the virtual MAC cannot be made.
    """

    def __init__(
        self, router: VirtualRouter, link: Link, *, source: str, addresses: Addresses, requests: Requests
    ) -> None:
        self._addresses = addresses
        self._requests = requests
        self._label = router.label
        self._virtual = (
            virtual_mac.add(requests, parent=link.index, router_id=router.router_id, family=router.family)
            if router.virtual_mac
            else None
        )
        place = self._virtual or link
        self.name, self.index, self.mac = place.name, place.index, place.mac
        # An IPv6 packet can leave a virtual MAC only from an address that it has.
        self._raise_up()
        self._besides = (f"{source}/128",) if self._virtual and router.family == 6 else ()
        self.prepare(router.addresses)

    def prepare(self, addresses: Iterable[str]) -> None:
        """Make ready what taking them needs, by what the interface reaches now; raises OSError."""
        self._addresses.prepare(self.index, (*self._besides, *addresses), label=self._label)

    def take(self, addresses: Iterable[str]) -> Taken:
        """Put addresses on the interface, at once; raises OSError."""
        self._raise_up()
        return self._addresses.take(self.index, (*self._besides, *addresses), label=self._label)

    def release(self, addresses: Iterable[str]) -> None:
        """Remove addresses that were put there; raises OSError."""
        self._addresses.release(self.index, addresses)

    def leave(self, addresses: Iterable[str]) -> None:
        """Remove all that was put there; raises OSError.

        A virtual MAC is made to forget that it was in multicast groups: reports of leaving them would teach
        switches that it is still here.
        """
        self._addresses.release(self.index, (*self._besides, *addresses))
        if self._virtual is not None:
            virtual_mac.lower(self._requests, self._virtual)
            self._raise_up()

    def _raise_up(self) -> None:
        """Have a virtual MAC ready: what is sent in the first moment after it came up would be lost."""
        if self._virtual is not None:
            virtual_mac.raise_up(self._requests, self._virtual)

    def close(self) -> None:
        """Remove the virtual MAC; raises OSError."""
        if self._virtual is not None:
            virtual_mac.remove(self._requests, self._virtual)
