"""What this node reports to the others about its own settings."""

from contextlib import suppress
from ipaddress import ip_address

from appliance.model.snapshot.frontends import Bind
from appliance.model.snapshot.snapshot import Stats
from appliance.wire.linger_node import CONFIGURATION, UNKNOWN


def configuration(digits: str) -> bytes:
    """Return the digest of a configuration, given in hexadecimal digits as `reload` has it; else UNKNOWN."""
    with suppress(ValueError):
        found = bytes.fromhex(digits)
        return found if len(found) == CONFIGURATION else UNKNOWN
    return UNKNOWN


def page_of(stats: Stats | None) -> str:
    """Return the status page's origin for other machines, "" if it is unreachable for them."""
    if stats is None:
        return ""
    scheme = "http" if stats.certificate is None else "https"
    return next((f"{scheme}://{each}" for each in map(_reachable, stats.binds) if each), "")


def _reachable(bind: Bind) -> str:
    with suppress(ValueError):
        address = ip_address(bind.host)
        if address.is_unspecified:
            return f":{bind.port}"
        if not address.is_loopback:
            return str(bind)
    return ""
