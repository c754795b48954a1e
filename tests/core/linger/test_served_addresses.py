"""What this node has of each virtual address over time."""

from collections.abc import Collection, Mapping

import pytest

from appliance.core.linger.served_addresses import (
    CUT_AT_MOST,
    KEPT_AT_LEAST,
    UNLED_AT_MOST,
    GaveUp,
    ServedAddress,
    ServedChanges,
    after,
)

pytestmark = pytest.mark.pure

VIP = "192.0.2.100"
DAY = 86400.0


def step(
    before: Mapping[str, ServedAddress],
    now: float,
    *,
    active: Collection[str] = (),
    connections: Mapping[str, int] | None = None,
    led: bool = True,
) -> ServedChanges:
    """Return what becomes of the addresses at `now`."""
    return after(
        before,
        active=active,
        connections=connections or {},
        led=[VIP] if led else [],
        longest=DAY,
        now=now,
    )


SERVED = step({}, 0.0, active=[VIP]).served
LEFT = step(SERVED, 100.0).served


def test_served_then_left():
    """An address that comes is served; one that goes is kept, from the moment that it has gone."""
    assert SERVED[VIP].active
    assert not LEFT[VIP].active
    assert step(LEFT, 101.0).served[VIP].left_at == 100.0


def test_nothing_of_what_was_never_served():
    """A backup has nothing of an address."""
    assert step({}, 0.0) == ServedChanges(served={}, given_up={})


def test_served_again():
    """An address that comes back is served as before."""
    assert step(LEFT, 101.0, active=[VIP]).served[VIP].active


def test_kept_while_there_are_connections():
    """It ends with the last connection, and not before the neighbours have learned the new place."""
    with_some = step(LEFT, 100.5, connections={VIP: 3}).served
    assert with_some[VIP].connections == 3
    assert step(with_some, 100.0 + KEPT_AT_LEAST).served[VIP].connections == 3
    assert step(with_some, 100.9, connections={VIP: 0}).given_up == {}
    assert step(with_some, 200.0, connections={VIP: 1}).given_up == {}
    assert step(with_some, 200.0, connections={VIP: 0}).given_up == {VIP: GaveUp.EMPTY}


def test_the_deadline():
    """After the longest time connections are cut, once, and the address goes when they have gone."""
    assert step(LEFT, 100.0 + DAY - 1, connections={VIP: 1}).cut == ()
    over = step(LEFT, 100.0 + DAY, connections={VIP: 1})
    assert (over.cut, over.given_up) == ((VIP,), {})
    later = step(over.served, 100.0 + DAY + 1, connections={VIP: 1})
    assert (later.cut, later.given_up) == ((), {})
    assert step(over.served, 100.0 + DAY + 1, connections={VIP: 0}).given_up == {VIP: GaveUp.DEADLINE}


def test_what_cannot_be_cut():
    """An address does not wait for connections that the kernel does not end."""
    over = step(LEFT, 100.0 + DAY, connections={VIP: 1}).served
    assert step(over, 100.0 + DAY + CUT_AT_MOST - 0.1, connections={VIP: 1}).given_up == {}
    last = step(over, 100.0 + DAY + CUT_AT_MOST, connections={VIP: 1})
    assert last.given_up == {VIP: GaveUp.DEADLINE}


def test_served_again_after_a_cut():
    """An address that comes back while connections are cut is served, and may be left again."""
    over = step(LEFT, 100.0 + DAY, connections={VIP: 1}).served
    back = step(over, 100.5 + DAY, active=[VIP]).served
    assert back[VIP] == ServedAddress(address=VIP, connections=1, led_at=100.5 + DAY)


def test_nobody_leads_packets_here():
    """A successor that is no appliance is not heard: its clients are reset, and nothing is kept for them."""
    later = step(LEFT, 100.0 + UNLED_AT_MOST - 1, led=False).served
    assert later[VIP].led_at == 100.0
    assert step(later, 100.0 + UNLED_AT_MOST, led=False).given_up == {VIP: GaveUp.UNLED}
    heard = step(later, 100.0 + UNLED_AT_MOST).served
    assert step(heard, 100.0 + UNLED_AT_MOST + 1, led=False).given_up == {}
