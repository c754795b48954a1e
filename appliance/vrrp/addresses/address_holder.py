"""The addresses of one virtual router, as long as it has them: taken, kept, handed on and released."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.vrrp.addresses.address_interface import AddressInterface
from appliance.vrrp.instance.counters import RouterCounters
from appliance.vrrp.instance.environment import RouterEnvironment

MOST_RESTORED: Final = 10
"""Addresses put back at once in the time of `RESTORED_IN`."""

RESTORED_IN: Final = 1.0
"""Seconds."""


class AddressHolder:
    """The addresses of `router` on its `interface`, which is None before there is an interface.

    `on_trouble` is told what could not be done and why, where that is no reason to stop.
    """

    def __init__(
        self,
        router: VirtualRouter,
        environment: RouterEnvironment,
        counters: RouterCounters,
        *,
        on_trouble: Callable[[str, OSError], None],
    ) -> None:
        self.router = router
        self.interface: AddressInterface | None = None
        self._environment = environment
        self._counters = counters
        self._on_trouble = on_trouble
        self._surplus: set[str] = set()
        self._restored: deque[float] = deque(maxlen=MOST_RESTORED)

    @property
    def held(self) -> bool:
        """Say whether its addresses are to be on the interface now."""
        return self in self._environment.holders

    @property
    def addresses(self) -> tuple[str, ...]:
        """Return the addresses that are to be on the interface now."""
        return self.router.addresses if self.held else ()

    def take(self) -> None:
        """Put the addresses on the interface; raises OSError."""
        if self.interface is None:
            raise OSError(f"interface {self.router.interface} does not exist")
        self._environment.holders.add(self)  # from the first one on there is something to release
        taken = self.interface.take(self.router.addresses)
        for address in taken.foreign:
            if self._counters.first("foreign", address):
                self._environment.log.warning("address-foreign", router=self.router.name, address=address)
        if taken.failed:
            raise OSError("; ".join(f"{address}: {why}" for address, why in taken.failed.items()))

    def prepare(self) -> None:
        """Make ready what taking them needs, by what the interface reaches now."""
        if self.interface is not None:
            try:
                self.interface.prepare(self.router.addresses)
            except OSError as error:
                self._on_trouble("prepare", error)

    def release(self) -> None:
        """Remove the addresses from the interface, but for those that another one has by now."""
        self._environment.holders.discard(self)
        if self.interface is not None:
            try:
                self.interface.leave(self._nobody_elses(self.interface, self.router.addresses))
            except OSError as error:
                self._on_trouble("release", error)

    def hand_on(self, addresses: Iterable[str]) -> None:
        """Leave these addresses to who takes this one's place; the others go with `settle`."""
        self._surplus |= set(self.addresses) - set(addresses)

    def forget(self) -> None:
        """Have the addresses no more, wherever they are."""
        self._environment.holders.discard(self)

    def revise(self, router: VirtualRouter) -> None:
        """Take other parameters; addresses that it has no longer go with `settle`."""
        if self.held and self.interface is not None:
            self._surplus |= set(self.router.addresses) - set(router.addresses)
        self.router = router

    def settle(self) -> None:
        """Remove the addresses that it had before it was revised."""
        surplus, self._surplus = self._surplus, set()
        if surplus and self.interface is not None:
            try:
                self.interface.release(self._nobody_elses(self.interface, sorted(surplus)))
            except OSError as error:
                self._on_trouble("release", error)

    def may_restore(self, now: float) -> bool:
        """Count one time that somebody else has removed addresses; False puts them off: two may fight."""
        self._restored.append(now)
        return now - self._restored[0] > RESTORED_IN or len(self._restored) < MOST_RESTORED

    def close(self) -> None:
        """Let go of the interface; addresses that are held stay, and so does it."""
        if self.interface is not None and not self.held:
            try:
                self.interface.close()
            except OSError as error:
                self._on_trouble("close", error)

    def _nobody_elses(self, interface: AddressInterface, addresses: Iterable[str]) -> list[str]:
        theirs = {
            address
            for each in self._environment.holders
            if each is not self and each.interface is not None and each.interface.index == interface.index
            for address in each.router.addresses
        }
        return [each for each in addresses if each not in theirs]
