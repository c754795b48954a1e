"""The interface that carries the addresses of one virtual router: its own, or its virtual MAC's macvlan."""

from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.net.netlink import virtual_mac
from appliance.net.netlink.links import Link
from appliance.net.netlink.netlink import Requests


class AddressInterface:
    """`name`, `index` and `mac` of the interface for the addresses, and the `label` that they get.

    `own_source` is added to it with the addresses: an IPv6 advert can leave a macvlan only from an address
    that the macvlan has. Making one raises OSError when the macvlan cannot be made.
    """

    def __init__(self, router: VirtualRouter, link: Link, *, source: str, requests: Requests) -> None:
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

    def raise_up(self) -> None:
        """Set a macvlan up; raises OSError.

        It is done before it is needed: the kernel drops what is sent in the first moment after it came up.
        """
        if self._macvlan is not None:
            virtual_mac.raise_up(self._requests, self._macvlan)

    def forget_groups(self) -> None:
        """Have a macvlan leave its multicast groups silently, by setting it down and up; raises OSError.

        Else the kernel sends IGMP and MLD reports of leaving (RFC 3376, RFC 3810) from the virtual MAC, and
        switches learn from them that the MAC is still here.
        """
        if self._macvlan is not None:
            virtual_mac.lower(self._requests, self._macvlan)
            self.raise_up()

    def close(self) -> None:
        """Delete the macvlan; raises OSError."""
        if self._macvlan is not None:
            virtual_mac.remove(self._requests, self._macvlan)
