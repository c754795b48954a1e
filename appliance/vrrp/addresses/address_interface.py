"""The interface that carries the addresses of one virtual router: its own, or its virtual MAC's macvlan.

Addresses that the operator assigned to other interfaces are on those.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.net.netlink import virtual_mac
from appliance.net.netlink.links import Link
from appliance.net.netlink.netlink import Requests


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressPlace:
    """Addresses of one virtual router, the index of their interface, and their label."""

    index: int
    addresses: tuple[str, ...]
    label: str | None = None


class AddressInterface:
    """`name`, `index` and `mac` of the interface for the addresses, and the `label` of the addresses.

    `own_source` is added with the addresses: an IPv6 advert can leave a macvlan only from an address of the
    macvlan. `others` are the further interfaces, as they are now, for the addresses assigned to them. The
    constructor raises OSError if the macvlan cannot be created.
    """

    def __init__(
        self,
        router: VirtualRouter,
        link: Link,
        *,
        source: str,
        requests: Requests,
        others: Iterable[Link] = (),
    ) -> None:
        self.others = {each.name: each for each in others}
        self._requests = requests
        self._macvlan = (
            virtual_mac.add(requests, parent=link.index, router_id=router.router_id, family=router.family)
            if router.virtual_mac
            else None
        )
        interface = self._macvlan or link
        self.name, self.index, self.mac = interface.name, interface.index, interface.mac
        self.label = router.label
        self.own_source = (f"{source}/128",) if self._macvlan and router.family == 6 else ()
        self.raise_up()

    def places(self, router: VirtualRouter) -> Iterator[AddressPlace]:
        """Yield where a router's addresses belong, its own interface first; missing ones are left out."""
        yield AddressPlace(index=self.index, addresses=router.here, label=self.label)
        for name, link in self.others.items():
            there = tuple(address for address, interface in router.elsewhere if interface == name)
            yield AddressPlace(index=link.index, addresses=there)

    def raise_up(self) -> None:
        """Set a macvlan up in advance, as its first packets are dropped; raises OSError."""
        if self._macvlan is not None:
            virtual_mac.raise_up(self._requests, self._macvlan)

    def forget_groups(self) -> None:
        """Have a macvlan leave its multicast groups silently, by setting it down and up; raises OSError.

        Otherwise the kernel sends IGMP and MLD leave reports (RFC 3376, RFC 3810) from the virtual MAC, from
        which switches learn that the MAC is still here.
        """
        if self._macvlan is not None:
            virtual_mac.lower(self._requests, self._macvlan)
            self.raise_up()

    def close(self) -> None:
        """Delete the macvlan; raises OSError."""
        if self._macvlan is not None:
            virtual_mac.remove(self._requests, self._macvlan)
