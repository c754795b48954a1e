"""What an earlier `announce` left that the configuration no longer has: BIRD, routes, addresses on `lo`."""

from structlog.typing import FilteringBoundLogger

from appliance.announce.bird import Bird
from appliance.announce.kernel_addresses import KernelAddresses
from appliance.model.paths import Paths


def remove_all(paths: Paths, log: FilteringBoundLogger) -> None:
    """Remove everything, and log what cannot be removed."""
    if not paths.announce_lock.exists():
        return
    Bird(paths, log).stop()
    try:
        kernel = KernelAddresses()
        kernel.put({}, None)
        kernel.close()
        paths.announce_lock.unlink(missing_ok=True)
    except OSError as error:
        log.warning("leftovers-unknown", reason=error.strerror or str(error))
