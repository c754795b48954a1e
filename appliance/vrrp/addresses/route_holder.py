"""The routes and rules of one virtual router: added after its addresses, restored, removed before them."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.net.netlink.routing import Routed, place
from appliance.vrrp.instance.faults import RefusedOperation
from appliance.vrrp.instance.shared_by_instances import RouterEnvironment

LOOK: Final = 2.0
"""Seconds between two checks that all are there: an interface that goes down loses its routes. The kernel
would report every change of every table, including the tables of a routing daemon.
"""

FOREIGN: Final = "another program has added one there, which stays"
"""The trouble if another program's route or rule is in the place of ours."""


class RouteHolder:
    """The routes and rules of `router`; `deadline` is when to check next, None while nothing is held.

    Each route or rule that is missing or wrong is one of the `troubles`, and is tried again until it is
    right: the addresses serve without it. `on_error` is called if the kernel gives no answer.
    """

    def __init__(
        self,
        router: VirtualRouter,
        environment: RouterEnvironment,
        *,
        on_error: Callable[[RefusedOperation, OSError], None],
    ) -> None:
        self.router = router
        self.deadline: float | None = None
        self._troubles: dict[Routed, str] = {}
        self._environment = environment
        self._on_error = on_error

    @property
    def troubles(self) -> tuple[str, ...]:
        """Return the messages for operators about routes and rules that are missing or wrong."""
        return tuple(f"{each}: {reason}" for each, reason in self._troubles.items())

    def take(self, now: float) -> None:
        """Add all to the kernel, now and at every check."""
        wanted = self.router.routed
        self.deadline = now + LOOK if wanted else None
        if not wanted:
            self._troubles = {}
            return
        try:
            added = self._environment.routing.add(wanted)
        except OSError as error:
            self._on_error(RefusedOperation.ROUTES, error)
            return
        log, name = self._environment.log, self.router.name
        if added.restored:
            log.warning("route-restored", router=name, routes=[str(each) for each in added.restored])
        before, self._troubles = self._troubles, {**dict.fromkeys(added.foreign, FOREIGN), **added.failed}
        for each, reason in self._troubles.items():
            if before.get(each) == reason:
                continue
            if reason == FOREIGN:
                log.warning("route-foreign", router=name, route=str(each))
            else:
                log.warning("route-refused", router=name, route=str(each), reason=reason)

    def tick(self, now: float) -> None:
        """Restore missing routes and rules, if a check is due."""
        if self.deadline is not None and now >= self.deadline:
            self.take(now)

    def release(self) -> None:
        """Remove them, except those that another virtual router holds."""
        self.disown()
        theirs = set(map(place, self._held()))
        own = [each for each in self.router.routed if place(each) not in theirs]
        self._try(self._environment.routing.remove, own)

    def disown(self) -> None:
        """Check no more, and leave the routes and rules in the kernel."""
        self.deadline, self._troubles = None, {}

    def remove_surplus(self) -> None:
        """Remove what no virtual router holds after a reload."""
        self._try(self._environment.routing.keep_only, list(self._held()))

    def _held(self) -> Iterator[Routed]:
        """Yield the routes and rules of all virtual routers that have addresses."""
        return (each for holder in self._environment.holders for each in holder.router.routed)

    def _try(self, change: Callable[[Iterable[Routed]], None], routed: list[Routed]) -> None:
        try:
            change(routed)
        except OSError as error:
            self._on_error(RefusedOperation.ROUTES, error)
