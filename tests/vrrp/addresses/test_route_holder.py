"""Routes and rules of virtual routers on a simulated machine: they come, stay and go with the addresses."""

import errno
from dataclasses import replace

import pytest
from support.values.snapshots import virtual_router
from support.vrrp.simulated_vrrp import Machine

from appliance.core.vrrp.election import RouterState
from appliance.model.snapshot.virtual_router import VirtualRoute, VirtualRule
from appliance.vrrp.addresses.route_holder import FOREIGN, LOOK
from appliance.vrrp.groups.router_group import RouterGroup
from appliance.vrrp.status import router_status

pytestmark = pytest.mark.pure

ROUTE = VirtualRoute(to="0.0.0.0/0", via="192.0.2.9", interface="eth0", table=1)
RULE = VirtualRule(source="192.0.2.200/32", table=1, priority=100)
PLAIN = virtual_router("api", announce=replace(virtual_router().announce, repeat=1, delay=0.0))
API = replace(PLAIN, routes=(ROUTE,), rules=(RULE,))
ACTIVE = 5.0


def active(machine: Machine) -> RouterGroup:
    """Return a group that holds its addresses."""
    group = machine.group(API)
    assert machine.routing.present == []
    machine.loop.run(ACTIVE)
    assert group.state is RouterState.ACTIVE
    return group


def test_they_come_and_go_with_the_addresses() -> None:
    """A backup has none; an active has routes and then rules, until it leaves."""
    machine = Machine()
    group = active(machine)
    assert machine.routing.present == [ROUTE, RULE]
    group.stop(ACTIVE)
    machine.loop.run(ACTIVE + 10.0)
    assert (machine.routing.present, machine.addresses.present) == ([], set())


def test_what_is_removed_comes_back() -> None:
    """The next look sees it, puts it back, and the log says what."""
    machine = Machine()
    active(machine)
    machine.routing.present.remove(RULE)
    machine.loop.run(ACTIVE + LOOK)
    assert machine.routing.present == [ROUTE, RULE]
    assert machine.log.fields("route-restored") == [{"router": "api", "routes": [str(RULE)]}]


def test_what_is_refused_keeps_no_address_away() -> None:
    """The addresses are held; log and status name the route and the reason, once, until it is taken."""
    machine = Machine()
    machine.routing.refused = {ROUTE: "Network is unreachable"}
    group = active(machine)
    machine.loop.run(ACTIVE + 5 * LOOK)
    instance = group.instances["api"]
    status = router_status(group, instance, now=ACTIVE)
    assert (status.held, status.routes) == (True, (str(ROUTE), str(RULE)))
    assert status.route_troubles == (f"{ROUTE}: Network is unreachable",)
    refusal = {"router": "api", "route": str(ROUTE), "reason": "Network is unreachable"}
    assert machine.log.fields("route-refused") == [refusal]
    machine.routing.refused = {}
    machine.loop.run(ACTIVE + 7 * LOOK)
    assert instance.holder.routes.troubles == ()
    machine.routing.present, machine.routing.refused = [], {ROUTE: "Network is unreachable"}
    machine.loop.run(ACTIVE + 9 * LOOK)
    assert machine.log.fields("route-refused") == [refusal, refusal]


def test_one_of_somebody_else_is_told() -> None:
    """It is a trouble while it is there, and told once."""
    machine = Machine()
    machine.routing.foreign = {ROUTE}
    group = active(machine)
    machine.loop.run(ACTIVE + 2 * LOOK)
    holder = group.instances["api"].holder
    assert holder.routes.troubles == (f"{ROUTE}: {FOREIGN}",)
    assert machine.log.fields("route-foreign") == [{"router": "api", "route": str(ROUTE)}]
    machine.routing.foreign = set()
    machine.loop.run(ACTIVE + 4 * LOOK)
    assert (holder.routes.troubles, machine.routing.present) == ((), [RULE, ROUTE])


def test_a_kernel_without_an_answer_ends_nothing() -> None:
    """It is logged once for each doing, and asked again."""
    machine = Machine()
    machine.routing.error = OSError(errno.ENOBUFS, "No buffer space available")
    group = active(machine)
    machine.loop.run(ACTIVE + 2 * LOOK)
    (told,) = machine.log.fields("socket-error")
    assert told["doing"] == "routes"
    machine.routing.error = None
    machine.loop.run(ACTIVE + 4 * LOOK)
    assert machine.routing.present == [ROUTE, RULE]
    machine.routing.error = OSError(errno.EPERM, "Operation not permitted")
    group.stop(ACTIVE + 4 * LOOK)
    machine.loop.run(ACTIVE + 20.0)
    assert machine.addresses.present == set()


def test_a_reload_changes_routes_and_no_address() -> None:
    """New ones are there at once, others are gone by the end; without any nothing is looked for."""
    machine = Machine()
    group = active(machine)
    instance = group.instances["api"]
    other = replace(ROUTE, via="192.0.2.8")
    announced = instance.counters.gratuitous_sent
    for changed, present in (
        (replace(API, routes=(other,), rules=()), [other]),
        (PLAIN, []),
        (API, [ROUTE, RULE]),
    ):
        group.reconfigure(instance, changed, ACTIVE)
        assert {address for _, address in machine.addresses.present} == set(API.addresses)
        instance.holder.remove_surplus()
        assert (machine.routing.present, instance.holder.routes.troubles) == (present, ())
        assert (instance.holder.routes.deadline is None) is (changed is PLAIN)
    assert instance.counters.gratuitous_sent == announced


def test_what_another_virtual_router_has_too_stays() -> None:
    """A route that two virtual routers share goes with the last of them."""
    machine = Machine()
    group = active(machine)
    other = machine.group(replace(API, name="b", router_id=52, addresses=("192.0.2.201/24",), rules=()))
    machine.loop.run(2 * ACTIVE)
    group.stop(2 * ACTIVE)
    machine.loop.run(4 * ACTIVE)
    assert (machine.routing.present, machine.routing.removed) == ([ROUTE], [RULE])
    other.stop(4 * ACTIVE)
    machine.loop.run(6 * ACTIVE)
    assert machine.routing.present == []
