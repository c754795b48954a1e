"""A node that joins: it takes nothing over until it knows all connections, or its time is up."""

from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance, Values

from appliance.model.loading.virtual_router_defaults import INFORMED_WITHIN


def wait_until_informed(appliance: Appliance) -> float:
    """Wait until no virtual router waits any more, and return how many seconds of their time were left."""
    left = [INFORMED_WITHIN]

    def is_informed() -> bool:
        routers: list[Values] = appliance.ask("vrrp", "status")["routers"]  # type: ignore[assignment]  # JSON
        left.append(max(float(str(each["uninformed_for"])) for each in routers))
        return not left[-1]

    wait_until(is_informed, what="the virtual routers are informed", timeout=2 * INFORMED_WITHIN)
    return left[-2]
