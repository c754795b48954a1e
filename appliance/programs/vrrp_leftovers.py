"""What an earlier life of `vrrp` left in the kernel and nobody goes on with: addresses and virtual MACs.

The kernel's mark says that an address is a `vrrp`'s, not which one's. Where another one lives in the same
network namespace only what is configured here is removed.
"""

from collections.abc import Collection, Iterable

from structlog.typing import FilteringBoundLogger

from appliance.net import virtual_mac
from appliance.net.addresses import Addresses
from appliance.net.netlink import Requests
from appliance.programs.virtual_router import Participant


def remove(
    addresses: Addresses,
    requests: Requests,
    participants: Collection[Participant],
    *,
    alone: bool,
    log: FilteringBoundLogger,
) -> None:
    """Remove them and say so, and what the kernel refuses; `alone` is whether no other `vrrp` lives here."""
    ours = {address for each in participants for address in each.router.addresses}
    for held in addresses.leftovers():
        if not alone and held.address not in ours:
            log.warning("leftover-of-another", address=held.address)
            continue
        try:
            addresses.release(held.index, [held.address])
        except OSError as error:
            log.warning("leftover-stays", address=held.address, reason=error.strerror or str(error))
        else:
            log.warning("leftover-removed", address=held.address)
    if alone:
        _remove_macs(requests, participants, log)


def _remove_macs(requests: Requests, participants: Iterable[Participant], log: FilteringBoundLogger) -> None:
    seats = {each.seat.index for each in participants if each.seat is not None}
    for virtual in virtual_mac.present(requests):
        if virtual.index in seats:
            continue
        try:
            virtual_mac.remove(requests, virtual)
        except OSError as error:
            log.warning("leftover-stays", interface=virtual.name, reason=error.strerror or str(error))
        else:
            log.warning("leftover-removed", interface=virtual.name)
