"""The addresses of one virtual router on its interfaces: added, restored, left to a successor and removed."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.vrrp.addresses.address_interface import AddressInterface, AddressPlace
from appliance.vrrp.addresses.route_holder import RouteHolder
from appliance.vrrp.instance.counters import RouterCounters
from appliance.vrrp.instance.faults import RefusedOperation
from appliance.vrrp.instance.shared_by_instances import RouterEnvironment

MOST_RESTORED: Final = 10
"""How often removed addresses are restored at once within `RESTORED_IN`; later removals wait."""

RESTORED_IN: Final = 1.0
"""Seconds."""


class AddressHolder:
    """The addresses of `router` on `interface`, which is None until the interface exists.

    `routes` are added after the addresses and removed before them, as routes may name addresses. `absent` is
    whether the interface does not exist now. `on_error` is called with the operation that the kernel refused
    and its error, if the instance continues regardless.
    """

    def __init__(
        self,
        router: VirtualRouter,
        environment: RouterEnvironment,
        counters: RouterCounters,
        *,
        on_error: Callable[[RefusedOperation, OSError], None],
    ) -> None:
        self.router = router
        self.interface: AddressInterface | None = None
        self.absent = True
        self.routes = RouteHolder(router, environment, on_error=on_error)
        self._environment = environment
        self._counters = counters
        self._on_error = on_error
        self._surplus: set[tuple[int, str]] = set()
        self._restored: deque[float] = deque(maxlen=MOST_RESTORED)

    @property
    def held(self) -> bool:
        """Return whether the addresses should be on the interface now."""
        return self in self._environment.holders

    @property
    def addresses(self) -> tuple[tuple[str, str], ...]:
        """Return the addresses that should be there now, each with the name of its interface."""
        if not self.held or self.interface is None:
            return ()
        return (*((self.interface.name, each) for each in self.router.here), *self._elsewhere())

    def _elsewhere(self) -> Iterator[tuple[str, str]]:
        return ((interface, address) for address, interface in self.router.elsewhere)

    def take(self, now: float) -> None:
        """Add the addresses to the interface, then the routes; raises OSError if an address fails."""
        interface = self.interface
        if interface is None or self.absent:
            raise OSError(f"interface {self.router.interface} does not exist")
        # Before the first address: if the kernel refuses one, those already added must be removed.
        self._environment.holders.add(self)
        interface.raise_up()
        missing = [each for each in self.router.other_interfaces if each not in interface.others]
        failed = dict.fromkeys(missing, "the interface does not exist")
        for place in _with_source(interface, self.router):
            taken = self._environment.addresses.take(place.index, place.addresses, label=place.label)
            failed |= taken.failed
            for address in taken.foreign:
                if self._counters.first("foreign", address):
                    self._environment.log.warning("address-foreign", router=self.router.name, address=address)
        if failed:
            raise OSError("; ".join(f"{each}: {why}" for each, why in failed.items()))
        self.routes.take(now)

    def prepare(self) -> None:
        """Build the kernel requests of `take` in advance, for the networks that the interface has now.

        A claiming Backup has no time to dump the kernel's addresses: no router serves meanwhile.
        """
        if self.interface is not None:
            try:
                prepare(self._environment, self.interface, self.router)
            except OSError as error:
                self._on_error(RefusedOperation.PREPARE, error)

    def release(self) -> None:
        """Remove the addresses from the interface, except those that another virtual router now holds."""
        self._environment.holders.discard(self)
        self.routes.release()
        if self.interface is not None:
            try:
                own = {(self.interface.index, each) for each in self.interface.own_source}
                self._remove(own | self._without_shared(_held(self.interface, self.router)))
                self.interface.forget_groups()
            except OSError as error:
                self._on_error(RefusedOperation.RELEASE, error)

    def leave_to_successor(self, addresses: Iterable[str]) -> None:
        """Leave `addresses` to the instance that replaces this one; `remove_surplus` removes the others."""
        stay = set(addresses)
        if self.held and self.interface is not None:
            self._surplus |= {each for each in _held(self.interface, self.router) if each[1] not in stay}

    def disown(self) -> None:
        """Count as an instance without addresses, but leave them on the interface."""
        self._environment.holders.discard(self)
        self.routes.disown()

    def reconfigure(self, router: VirtualRouter) -> None:
        """Use other parameters; `remove_surplus` removes the addresses that are no longer configured."""
        if self.held and self.interface is not None:
            self._surplus |= _held(self.interface, self.router) - _held(self.interface, router)
        self.router = self.routes.router = router

    def remove_surplus(self) -> None:
        """Remove the addresses that a reload took from this router, and all routes that no router uses.

        Call it when every router of the reload has its new addresses: another router may have received them.
        """
        self.routes.remove_surplus()
        surplus, self._surplus = self._surplus, set()
        if surplus:
            try:
                self._remove(self._without_shared(surplus))
            except OSError as error:
                self._on_error(RefusedOperation.RELEASE, error)

    def may_restore(self, now: float) -> bool:
        """Count a removal of addresses by another program; return False if too many mean that we must wait.

        Otherwise two programs that both manage the same addresses would fight forever.
        """
        self._restored.append(now)
        return now - self._restored[0] > RESTORED_IN or len(self._restored) < MOST_RESTORED

    def close(self) -> None:
        """Delete a macvlan, unless addresses are held on it."""
        if self.interface is not None and not self.held:
            try:
                self.interface.close()
            except OSError as error:
                self._on_error(RefusedOperation.CLOSE, error)

    def _remove(self, held: Iterable[tuple[int, str]]) -> None:
        """Remove addresses from the interfaces with these indexes; raises OSError."""
        found = sorted(held)
        for index in dict.fromkeys(index for index, _ in found):
            self._environment.addresses.release(index, [each for at, each in found if at == index])

    def _without_shared(self, held: set[tuple[int, str]]) -> set[tuple[int, str]]:
        """Return the addresses that no other virtual router holds on the same interface."""
        theirs = (
            _held(each.interface, each.router)
            for each in self._environment.holders
            if each is not self and each.interface is not None
        )
        return held.difference(*theirs)


def prepare(environment: RouterEnvironment, interface: AddressInterface, router: VirtualRouter) -> None:
    """Build the kernel requests that put a router's addresses on their interfaces; raises OSError."""
    for place in _with_source(interface, router):
        environment.addresses.prepare(place.index, place.addresses, label=place.label)


def _with_source(interface: AddressInterface, router: VirtualRouter) -> Iterator[AddressPlace]:
    """Yield the places of a router's addresses, with the source address that a macvlan needs."""
    own, *others = interface.places(router)
    yield replace(own, addresses=(*interface.own_source, *own.addresses))
    yield from others


def _held(interface: AddressInterface, router: VirtualRouter) -> set[tuple[int, str]]:
    """Return the addresses of a router, each with the index of its interface."""
    return {(place.index, each) for place in interface.places(router) for each in place.addresses}
