"""Whether new connections are served: what HAProxy's `monitor-uri` tells, beside the statistics."""

from appliance.core.status.status import Status
from appliance.model.program_names import PROXIES


def serves(status: Status, pool: str | None) -> bool:
    """Say whether workers of each group accept, and a server of a pool is up, where one is needed."""
    groups = [each for each in status.programs if each.name in PROXIES and each.expected]
    return all(each.workers for each in groups) and (
        pool is None or any(each.up for each in status.pools if each.name == pool)
    )
