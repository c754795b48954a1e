"""The routes and rules of one virtual router: added behind its addresses, put back, removed before them."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.net.netlink.routing import Routed, place
from appliance.vrrp.instance.environment import RouterEnvironment
from appliance.vrrp.instance.faults import RefusedOperation

LOOK: Final = 2.0
"""Seconds from one look to the next whether they are all there: an interface that goes down loses its own.

The kernel would tell of each change of each table, which may be those of a routing daemon.
"""

FOREIGN: Final = "somebody else has put one there, which stays"
"""What is wrong where one of somebody else is in the place of ours."""


class RouteHolder:
    """The routes and rules of `router`; `deadline` is when to look again, None while nothing is held.

    What is not as it is to be is one of the `troubles` until it is, and tried again: the addresses serve
    without it. `on_error` is called where the kernel gives no answer.
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
        """Return what operators read of those that are not as they are to be."""
        return tuple(f"{each}: {reason}" for each, reason in self._troubles.items())

    def take(self, now: float) -> None:
        """Have them all in the kernel, now and from look to look."""
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
        """Put back what is missing, if a look is due."""
        if self.deadline is not None and now >= self.deadline:
            self.take(now)

    def release(self) -> None:
        """Remove them, except those that another virtual router holds."""
        self.disown()
        theirs = set(map(place, self._held()))
        own = [each for each in self.router.routed if place(each) not in theirs]
        self._try(self._environment.routing.remove, own)

    def disown(self) -> None:
        """Look no more, and leave what is there."""
        self.deadline, self._troubles = None, {}

    def remove_surplus(self) -> None:
        """Remove what no virtual router holds after a reload."""
        self._try(self._environment.routing.keep_only, list(self._held()))

    def _held(self) -> Iterator[Routed]:
        """Yield what all virtual routers with addresses have."""
        return (each for holder in self._environment.holders for each in holder.router.routed)

    def _try(self, change: Callable[[Iterable[Routed]], None], routed: list[Routed]) -> None:
        try:
            change(routed)
        except OSError as error:
            self._on_error(RefusedOperation.ROUTES, error)
