"""Virtual addresses that a configuration removes from this machine, and the binds that would lose them.

A socket outlives its address, so the reload would succeed and the next start fail.
"""

from collections.abc import Container, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from appliance.model.paths import Paths
from appliance.model.snapshot.frontends import Bind
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.listening.bind_addresses import candidates
from appliance.net.listening.bind_refusals import BindProblem, BindRefused

_ANY_ADDRESS: Final = Path("/proc/sys/net/ipv4/ip_nonlocal_bind")
_ANY_ADDRESS_6: Final = Path("/proc/sys/net/ipv6/ip_nonlocal_bind")

_REMOVED: Final = (
    "no interface will have this address: the virtual IP goes, and the next start could not bind it; "
    "change the bind as well"
)


def removed_addresses(before: Snapshot | None, after: Snapshot, paths: Paths) -> frozenset[str]:
    """Return the addresses virtual in `before` only, and not the machine's own, without prefix lengths.

    Addresses that the machine's settings allow to bind anyway are left out.
    """
    gone = before.virtual_addresses - after.virtual_addresses if before else frozenset[str]()
    gone = frozenset(each for each in gone if not _may_be_bound_anyway(each))
    return gone - _own(paths) if gone else gone


def _own(paths: Paths) -> frozenset[str]:
    from appliance.net.netlink.address_record import AddressRecord  # noqa: PLC0415
    from appliance.net.netlink.virtual_addresses import Addresses  # noqa: PLC0415  # netlink, for this case only

    try:
        with Addresses(AddressRecord(paths.owned_addresses)) as addresses:
            return addresses.own()
    except OSError:  # if the machine's addresses are unknown, assume that it has none of them
        return frozenset()


def _may_be_bound_anyway(address: str) -> bool:
    setting = _ANY_ADDRESS_6 if ":" in address else _ANY_ADDRESS
    try:
        return setting.read_text().strip() == "1"
    except OSError:
        return False


def binds_without_address(binds: Iterable[Bind], removed: Container[str]) -> tuple[BindProblem, ...]:
    """Return the binds of removed addresses, as problems for the operator."""
    problems = []
    for bind in binds:
        with suppress(BindRefused):  # a name: binding reports whether it has an address
            if any(each.host in removed for each in candidates(bind)):
                problems.append(BindProblem(bind=bind, reason=_REMOVED))
    return tuple(problems)
