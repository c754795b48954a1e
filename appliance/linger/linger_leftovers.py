"""Addresses on `lo` that an earlier `linger` has left, where the configuration has none any more."""

from structlog.typing import FilteringBoundLogger

from appliance.model.paths import Paths
from appliance.net.netlink.kept_addresses import KeptAddresses


def remove_all(paths: Paths, log: FilteringBoundLogger) -> None:
    """Remove and log them, where a `linger` has run in this runtime directory; its rules time out alone."""
    lock = paths.runtime / "linger.lock"
    if not lock.exists():
        return
    try:
        kept = KeptAddresses()
        for address in sorted(kept.present(())):
            kept.remove(address)
            log.warning("leftover-removed", address=address)
        kept.close()
        lock.unlink(missing_ok=True)
    except OSError as error:
        log.warning("leftovers-unknown", reason=error.strerror or str(error))
