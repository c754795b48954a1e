"""Virtual addresses that a configuration takes from this machine, though something may listen there."""

from pathlib import Path
from typing import Final

from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot

_ANY_ADDRESS: Final = Path("/proc/sys/net/ipv4/ip_nonlocal_bind")
_ANY_ADDRESS_6: Final = Path("/proc/sys/net/ipv6/ip_nonlocal_bind")


def going_addresses(before: Snapshot | None, after: Snapshot, paths: Paths) -> frozenset[str]:
    """Return the addresses, without prefix length, that are virtual in `before` only, and nobody else's here.

    None of those that may be bound anyway, by the machine's settings.
    """
    gone = before.virtual_addresses - after.virtual_addresses if before else frozenset[str]()
    gone = frozenset(each for each in gone if not _may_be_bound_anyway(each))
    return gone - _own(paths) if gone else gone


def _own(paths: Paths) -> frozenset[str]:
    from appliance.net.netlink.addresses import Addresses  # noqa: PLC0415  # netlink, for this case only
    from appliance.net.netlink.owned_addresses import OwnedAddresses  # noqa: PLC0415

    try:
        with Addresses(OwnedAddresses(paths.owned_addresses)) as addresses:
            return addresses.own()
    except OSError:  # who cannot tell what the machine has does not promise that it has them
        return frozenset()


def _may_be_bound_anyway(address: str) -> bool:
    setting = _ANY_ADDRESS_6 if ":" in address else _ANY_ADDRESS
    try:
        return setting.read_text().strip() == "1"
    except OSError:
        return False
