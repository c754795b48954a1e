"""Which bind of a frontend takes the connections that are redirected to it."""

from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final

from appliance.model.snapshot.frontends import Bind

_EVERY: Final = {4: ("::", "0.0.0.0"), 6: ("::",)}  # noqa: S104  # recognised, not bound


def takes(bind: Bind, family: int) -> bool:
    """Return whether a bind can take connections of IPv4 (4) or IPv6 (6) from outside."""
    if is_every_address(bind, family):
        return True
    try:
        address = ip_address(bind.host)
    except ValueError:  # a name, such as `localhost`
        return False
    return address.version == family and not (address.is_loopback or address.is_unspecified)


def is_every_address(bind: Bind, family: int) -> bool:
    """Return whether a bind takes connections to any address of a family; `::` takes IPv4 too."""
    return bind.host in _EVERY[family]


def target(binds: Iterable[Bind], family: int) -> Bind | None:
    """Return the first bind that takes connections of a family, None if none does."""
    return next((each for each in binds if takes(each, family)), None)
