"""What in the status of vrrp is a problem."""

import time

import pytest
from support.vrrp.vip_answers import answer, heard, router

from appliance.core.status.problems import troubles
from appliance.wire.lines.status_answer import decode
from appliance.wire.lines.vrrp_status import VrrpStatus

pytestmark = pytest.mark.pure


def said(*routers: dict[str, object], **changes: object) -> VrrpStatus:
    """Return the answer as the console reads it."""
    return decode(answer(*routers, **changes), VrrpStatus)


def told(*routers: dict[str, object], **changes: object) -> list[str]:
    """Return the problems in an answer."""
    return list(troubles(said(*routers, **changes)))


def test_all_is_well():
    """An active and a backup router, with what they need, are no problem."""
    assert told(router(), router("ingress", state="backup", heard=[heard("192.0.2.9")])) == []


def test_a_fault_has_its_reasons():
    """All reasons of a fault are told, and that there is none where it gives none."""
    reasons = ["eth0 has no carrier", "readyz is down"]
    assert told(router(state="fault", fault_reasons=reasons), router("b", state="fault")) == [
        "virtual IP api is in fault: eth0 has no carrier; readyz is down",
        "virtual IP b is in fault: no reason is given",
    ]


def test_missing_capabilities_are_told_once():
    """Every virtual IP is in fault without them, which is one problem and not many."""
    missing = ["CAP_NET_ADMIN", "CAP_NET_RAW"]
    assert told(router(state="fault"), router("b", state="fault"), missing=missing) == [
        "vrrp lacks CAP_NET_ADMIN and CAP_NET_RAW: no virtual IP can be held here"
    ]


def test_a_stop_is_told_until_it_is_over():
    """A node that takes part in no virtual router any more was told so by a line."""
    assert told(takes_part=False) == [
        "virtual IPs are left to others since the line `stop`: `appliance reload` has them back"
    ]


def test_routes_that_are_not_there_are_told():
    """Each with what the kernel says; the addresses are served all the same."""
    troubles = ["10.1.0.0/16 via 192.0.2.9: Network is unreachable"]
    assert told(router(route_troubles=troubles)) == [
        "virtual IP api is active here without 10.1.0.0/16 via 192.0.2.9: Network is unreachable"
    ]


def test_an_active_router_without_its_addresses_is_a_problem():
    """To be active and not to serve is worse than to be backup."""
    assert told(router(held=False)) == [
        "virtual IP api is active, but its addresses are not on the interface"
    ]


def test_two_active_routers_are_a_problem():
    """A router that advertises while this one is active is named, with its priority."""
    assert told(router(heard=[heard("192.0.2.9", priority=40)])) == [
        "virtual IP api is active here and on 192.0.2.9 (priority 40) at the same time"
    ]


@pytest.mark.parametrize(
    ("state", "since"), [("silent", -60.0), ("left", -60.0), ("active", -0.5), ("active", 0.0)]
)
def test_who_was_active_before_is_no_rival(state: str, since: float):
    """Whoever was heard before this node had settled, or has left, is not active beside it."""
    before = time.time()
    seen = router(since=before + since if since else 0.0, heard=[heard("192.0.2.9", state=state)])
    assert told(seen) == []


def test_a_conflict_of_an_active_says_so():
    """Who does not obey the active may be another one; who is obeyed in spite of a deviation is not."""
    unheeded, obeyed = (
        {"kind": "clock", "peer": "192.0.2.9", "detail": "hmac-time", "obeyed": each}
        for each in (False, True)
    )
    assert told(router(conflicts=[unheeded, obeyed])) == [
        "virtual IP api is active here, in conflict with 192.0.2.9 (clock): hmac-time",
        "virtual IP api has a conflict with 192.0.2.9 (clock): hmac-time",
    ]


def test_conflicts_are_named():
    """A conflict has its kind, who and what; without the last two it is still one."""
    full = {"kind": "addresses", "peer": "192.0.2.9", "detail": "10.0.0.1", "last_heard": 1.0}
    assert told(router(state="backup", conflicts=[full, {"kind": "version"}])) == [
        "virtual IP api has a conflict with 192.0.2.9 (addresses): 10.0.0.1",
        "virtual IP api has a conflict with an unknown machine (version)",
    ]
