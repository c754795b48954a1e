"""Virtual IPs of the configuration, with what vrrp says of them."""

import pytest
from support.values.snapshots import snapshot, virtual_router

from appliance.core.status.assessment import virtual_ips
from appliance.core.status.status import VirtualIpStatus
from appliance.wire.lines.vrrp_status import HeardRouterStatus, RouterStatus, VrrpStatus

pytestmark = pytest.mark.pure


def shown(vrrp: VrrpStatus | None) -> VirtualIpStatus:
    """Return the one virtual IP of a configuration."""
    [found] = virtual_ips(snapshot(virtual_routers=[virtual_router("api", sync_group="both")]), vrrp)
    return found


def test_a_virtual_ip_is_shown_with_what_vrrp_says_of_it():
    """Addresses and terms are the configuration's, state and priority vrrp's."""
    said = RouterStatus(name="api", state="active", since=190.0, priority=120, held=True)
    found = shown(VrrpStatus(routers=(said,)))
    assert (found.name, found.addresses, found.interface) == ("api", ("192.0.2.200/24",), "eth0")
    assert (found.router_id, found.version, found.sync_group, found.base) == (51, 2, "both", 100)
    assert (found.state, found.since, found.active, found.priority) == ("active", 190.0, True, 120)


def test_a_backup_names_the_active_router():
    """Who serves instead is shown, as far as it is heard."""
    heard = HeardRouterStatus(peer="192.0.2.9", state="active", last_heard=199.0)
    found = shown(
        VrrpStatus(routers=(RouterStatus(name="api", state="backup", heard=(heard,), yielded=True),))
    )
    assert (found.active, found.active_peer, found.since, found.yielded) == (False, "192.0.2.9", None, True)


@pytest.mark.parametrize("vrrp", [None, VrrpStatus()])
def test_a_virtual_ip_that_vrrp_does_not_know_has_no_state(vrrp: VrrpStatus | None):
    """Without vrrp, and between a reload and its commit, nothing is known but the configuration."""
    found = shown(vrrp)
    assert (found.state, found.active, found.priority, found.yielded, found.base) == (
        None,
        None,
        None,
        False,
        100,
    )
