"""Addresses on `lo` and devices that an earlier `linger` left and that the configuration no longer has."""

from structlog.typing import FilteringBoundLogger

from appliance.linger import tunnels
from appliance.model.paths import Paths
from appliance.net.netlink.loopback_addresses import KeptAddresses
from appliance.net.netlink.netlink import Requests


def remove_all(paths: Paths, log: FilteringBoundLogger) -> None:
    """Remove and log them; the rules time out without our doing."""
    if not paths.linger_lock.exists():
        return
    try:
        kept = KeptAddresses()
        for address in sorted(kept.present(())):
            kept.remove(address)
            log.warning("leftover-removed", address=address)
        kept.close()
        with Requests() as requests:
            for name in tunnels.remove_all(requests):
                log.warning("leftover-removed", interface=name)
        paths.linger_lock.unlink(missing_ok=True)
    except OSError as error:
        log.warning("leftovers-unknown", reason=error.strerror or str(error))
