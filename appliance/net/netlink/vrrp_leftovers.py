"""Addresses, routes and virtual MACs that an earlier `vrrp` left in the kernel and the new one does not use.

The kernel's mark shows that a `vrrp` added an address, not which one. If another one runs in the same network
namespace, only addresses and routes configured here are removed.
"""

from collections.abc import Callable, Collection
from functools import partial
from typing import Final

from structlog.typing import FilteringBoundLogger

from appliance.model.paths import Paths
from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.net.netlink import virtual_mac
from appliance.net.netlink.address_record import AddressRecord
from appliance.net.netlink.namespace_claim import NamespaceClaim
from appliance.net.netlink.netlink import Requests
from appliance.net.netlink.routing import Routing, place
from appliance.net.netlink.virtual_addresses import Addresses
from appliance.net.privileges import process_capabilities

CLAIM: Final = "lb-appliance-vrrp"
"""The abstract socket name that a running `vrrp` has in its network namespace (NamespaceClaim)."""


def remove(
    addresses: Addresses,
    routing: Routing,
    requests: Requests,
    *,
    routers: Collection[VirtualRouter],
    in_use: Collection[int],
    alone: bool,
    log: FilteringBoundLogger,
) -> None:
    """Remove and log them; `alone` is whether no other `vrrp` runs in this network namespace.

    `routers` are configured here, `in_use` the indexes of virtual MACs that this `vrrp` uses.
    """
    # Before the addresses: with an address the kernel removes routes that have it as their source.
    places = {place(routed) for each in routers for routed in each.routed}
    for routed in reversed(routing.leftovers()):
        if not alone and place(routed) not in places:
            log.warning("leftover-of-another", route=str(routed))
        elif reason := _refusal(partial(routing.remove, [routed])):
            log.warning("leftover-stays", route=str(routed), reason=reason)
        else:
            log.warning("leftover-removed", route=str(routed))
    ours = {address for each in routers for address in each.addresses}
    for held in addresses.leftovers():
        if not alone and held.address not in ours:
            log.warning("leftover-of-another", address=held.address)
        elif reason := _refusal(partial(addresses.release, held.index, [held.address])):
            log.warning("leftover-stays", address=held.address, reason=reason)
        else:
            log.warning("leftover-removed", address=held.address)
    if alone:
        _remove_macs(requests, in_use, log)


def remove_all(paths: Paths, log: FilteringBoundLogger) -> bool:
    """Remove everything if no `vrrp` runs or is meant to; return whether something may not be removed."""
    try:
        claim = NamespaceClaim(CLAIM)
    except OSError as error:
        log.warning("leftovers-unknown", reason=error.strerror or str(error))
        return False
    try:
        return claim.held and _remove_unclaimed(paths, log)
    except OSError as error:
        log.warning("leftovers-unknown", reason=error.strerror or str(error))
        return False
    finally:
        claim.close()


def _remove_unclaimed(paths: Paths, log: FilteringBoundLogger) -> bool:
    requests = Requests()
    try:
        with Addresses(AddressRecord(paths.owned_addresses)) as addresses:
            routing = Routing(requests)
            left = sorted(held.address for held in addresses.leftovers())
            left += [str(routed) for routed in routing.leftovers()]
            left += [virtual.name for virtual in virtual_mac.present(requests)]
            if left and (missing := process_capabilities.missing()):
                log.warning("leftovers-stay", left=left, missing=list(missing))
                return True
            if left:
                remove(addresses, routing, requests, routers=(), in_use=(), alone=True, log=log)
            return False
    finally:
        requests.close()


def _remove_macs(requests: Requests, in_use: Collection[int], log: FilteringBoundLogger) -> None:
    for virtual in virtual_mac.present(requests):
        if virtual.index in in_use:
            continue
        if reason := _refusal(partial(virtual_mac.remove, requests, virtual)):
            log.warning("leftover-stays", interface=virtual.name, reason=reason)
        else:
            log.warning("leftover-removed", interface=virtual.name)


def _refusal(remove: Callable[[], object]) -> str | None:
    """Remove one thing; return why it stays, or None if it is gone."""
    try:
        remove()
    except OSError as error:
        return error.strerror or str(error)
    return None
