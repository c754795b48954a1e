"""Keeps the sockets of one instance open, and reopens them when its interface has been replaced.

A packet socket is bound to the index of its interface. An interface that was deleted and recreated under the
same name has another index, and sockets on the old one neither send nor receive.
"""

from collections.abc import Callable
from enum import Enum

from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.net.netlink.links import Link
from appliance.vrrp.addresses.address_holder import AddressHolder, prepare
from appliance.vrrp.addresses.address_interface import AddressInterface
from appliance.vrrp.instance.faults import FaultReason, Faults
from appliance.vrrp.instance.shared_by_instances import RouterEnvironment
from appliance.vrrp.sockets import interface_addresses
from appliance.vrrp.sockets.advert_receiver import AdvertDeviation, DroppedAdvert
from appliance.vrrp.sockets.port import Port
from appliance.vrrp.sockets.router_sockets import basis


class PortOpening(Enum):
    """The result of an attempt to open the sockets.

    OPENED: they are new. KEPT: the open ones fit. REFUSED: the kernel refused one, to be tried again.
    UNUSABLE: there is no interface or no source address, which netlink will report.
    """

    OPENED = "opened"
    KEPT = "kept"
    REFUSED = "refused"
    UNUSABLE = "unusable"


class InstancePort:
    """The sockets of one instance on its `link`; `open_port` is None while there are none.

    It sets the faults INTERFACE, SOURCE and SOCKET, and the interface of `holder`. `on_readable` is called
    from the loop when a packet has arrived.
    """

    def __init__(
        self,
        router: VirtualRouter,
        environment: RouterEnvironment,
        *,
        faults: Faults,
        holder: AddressHolder,
        on_readable: Callable[[], None],
        on_drop: Callable[[DroppedAdvert, float], None],
        on_deviation: Callable[[AdvertDeviation, float], None],
    ) -> None:
        self.router = router
        self.link: Link | None = None
        self.others: tuple[Link | None, ...] = ()
        self.open_port: Port | None = None
        self.prepare_at: float | None = None
        self._environment = environment
        self._faults = faults
        self._holder = holder
        self._on_readable = on_readable
        self._on_drop = on_drop
        self._on_deviation = on_deviation
        self._opened_for: object = None
        self._reached = frozenset[str]()

    @property
    def source(self) -> str | None:
        """Return the address that advertisements come from, None without open sockets."""
        return self.open_port.source if self.open_port else None

    def others_now(self) -> tuple[Link | None, ...]:
        """Return the other interfaces that carry addresses, None for each that does not exist."""
        links = self._environment.links
        return tuple(
            interface_addresses.without_virtual(links.state(each)) for each in self.router.other_interfaces
        )

    def update_link(self, link: Link | None, now: float) -> PortOpening:
        """Store the state of the interface, None while there is none, and open sockets that fit it."""
        self.link = link
        self._holder.absent = link is None
        if link is None:
            self._faults.add(FaultReason.INTERFACE, f"interface {self.router.interface} does not exist")
            self.close()
            return PortOpening.UNUSABLE
        if not link.up:
            self._faults.add(
                FaultReason.INTERFACE, f"interface {self.router.interface} is down or has no carrier"
            )
            return PortOpening.UNUSABLE
        return self.open(now)

    def open(self, now: float) -> PortOpening:
        """Open the sockets, or reopen them if what they depend on has changed."""
        link = self.link
        if link is None or self._environment.missing:
            return PortOpening.UNUSABLE
        self._judge_others(link)
        source = interface_addresses.source(self.router, link, kept=self._kept_source())
        if source is None:
            self._faults.add(
                FaultReason.SOURCE,
                f"{self.router.interface} has no IPv{self.router.family} address of its own",
            )
            return PortOpening.UNUSABLE
        self._faults.remove(FaultReason.SOURCE)
        # A configured source may be missing on the interface. With it in `wanted` the sockets are reopened
        # when it disappears, and that fails: the kernel refuses to bind to an address that is not there.
        has_source = interface_addresses.has(link, source)
        others = tuple((each.index, each.mac) for each in self._there())
        wanted = (link.index, link.mac, source, has_source, others, basis(self.router))
        if self.open_port is not None and self._opened_for == wanted:
            self._faults.remove(FaultReason.SOCKET)
            self._plan_preparation(link, now)
            return PortOpening.KEPT
        try:
            interface, opened = self._open(link, source)
        except OSError as error:
            # The sockets on the old interface stay open: a stop must still send by them that it leaves.
            self._faults.add(
                FaultReason.SOCKET,
                f"cannot send from {source} on {self.router.interface}: {error.strerror or error}",
            )
            return PortOpening.REFUSED
        self.close()
        self._holder.interface, self.open_port = interface, opened
        self._opened_for = wanted
        self._reached, self.prepare_at = interface_addresses.reached(self.router, link, self._there()), None
        self._faults.remove(FaultReason.SOCKET)
        self._environment.loop.read(opened.fileno(), self._on_readable)
        return PortOpening.OPENED

    def close(self) -> None:
        """Close the sockets; harmless when there are none."""
        if self.open_port is not None:
            self._environment.loop.forget(self.open_port.fileno())
            self.open_port.close()
            self.open_port = None

    def _judge_others(self, link: Link) -> None:
        """Set or clear the fault of the interfaces; that of the router's own is named first."""
        self.others = self.others_now()
        known = zip(self.router.other_interfaces, self.others, strict=True)
        away = [name for name, other in known if other is None or not other.up]
        if link.up and away:
            message = f"interface {away[0]} does not exist, is down or has no carrier"
            self._faults.add(FaultReason.INTERFACE, message)
        elif link.up:
            self._faults.remove(FaultReason.INTERFACE)

    def _there(self) -> list[Link]:
        """Return those of the other interfaces that exist."""
        return [each for each in self.others_now() if each is not None]

    def _kept_source(self) -> str | None:
        if self.open_port is None or self.open_port.basis != basis(self.router):
            return None
        return self.open_port.source

    def _open(self, link: Link, source: str) -> tuple[AddressInterface, Port]:
        environment = self._environment
        interface = AddressInterface(
            self.router, link, source=source, requests=environment.requests, others=self._there()
        )
        prepare(environment, interface, self.router)
        opened = environment.open_port(
            self.router,
            interface=interface,
            source=source,
            closer=environment.closer,
            on_drop=self._on_drop,
            on_deviation=self._on_deviation,
        )
        return interface, opened

    def _plan_preparation(self, link: Link, now: float) -> None:
        """Rebuild the requests that add the addresses if they now need other routes.

        A later tick does this: it reads all addresses of the interface from the kernel, once for each of
        perhaps hundreds of virtual routers, and adverts are due meanwhile.
        """
        reached = interface_addresses.reached(self.router, link, self._there())
        if reached != self._reached:
            self._reached, self.prepare_at = reached, now
