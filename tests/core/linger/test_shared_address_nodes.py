"""Which nodes may have a connection of a shared address, and when all of them are known."""

import pytest

from appliance.core.linger.nodes import SILENT, SharingNode
from appliance.core.linger.shared_address_nodes import DEAD, DOUBTFUL, MOST_OTHERS, Company, Exchange, company
from appliance.core.linger.silent_nodes import ALONE

pytestmark = pytest.mark.pure

ADDRESS, ANOTHER = "198.51.100.10", "198.51.100.11"
OURS = bytes(5) + b"\xff"
B, C = "192.0.2.2", "192.0.2.3"


def node(
    name: str,
    *,
    at: float = 10.0,
    since: float = 0.0,
    hears: bool = True,
    addresses: tuple[str, ...] = (ADDRESS,),
) -> SharingNode:
    """Return another node, which accepts our reports if it `hears` them."""
    return SharingNode(
        node=name,
        mac=bytes(5) + name[-1].encode(),
        since=since,
        at=at,
        addresses=dict.fromkeys(addresses, True),
        heard=frozenset({OURS} if hears else ()),
    )


def company_of(
    *nodes: SharingNode,
    now: float = 10.0,
    since: float | None = 0.0,
    awake: float = 0.0,
    seen: dict[str, float] | None = None,
    peers: tuple[str, ...] = (B, C),
) -> Company:
    """Return what is made of these nodes."""
    exchange = Exchange(peers=peers, macs={OURS}, since=since, awake=awake)
    return company(nodes, (ADDRESS, ANOTHER), exchange, seen=seen or {}, now=now)


def test_all_that_have_the_address_are_asked():
    """A node that has another configuration is not, nor one that is no peer."""
    found = company_of(node(C, addresses=(ADDRESS, ANOTHER)), node(B), node("192.0.2.9"))
    assert found.others == {ADDRESS: (B, C), ANOTHER: (C,)}
    assert found.settled
    assert found.alone == frozenset()


def test_a_silent_node_is_dead_after_a_second():
    """It is doubtful before; a sign of life of its kernel keeps it until it counts as gone."""
    assert company_of(node(B, at=10.0 - DEAD + 0.1)).others[ADDRESS] == (B,)
    assert company_of(node(B, at=10.0 - DEAD)).others[ADDRESS] == ()
    assert company_of(node(B, at=10.0 - DEAD), seen={B: 9.5}).others[ADDRESS] == (B,)
    assert company_of(node(B, at=10.0 - SILENT), seen={B: 9.5}).others[ADDRESS] == ()
    assert company_of(node(B, at=10.0 - DOUBTFUL), node(C, at=9.9)).doubtful == (B,)
    assert company_of(node(B, at=10.0 - SILENT)).doubtful == ()


def test_a_node_that_was_held_up_itself():
    """It has heard nobody meanwhile: nobody is dead for a second, and nothing is settled."""
    found = company_of(node(B, at=7.0), awake=9.5, peers=(B, C))
    assert found.others[ADDRESS] == (B,)
    assert not found.settled
    assert company_of(node(B, at=10.0), awake=9.5, peers=(B,)).settled


def test_alone():
    """Without any other node an unknown packet is reset, where the peers had the time to be heard."""
    assert company_of(now=ALONE).alone == {ADDRESS, ANOTHER}
    assert company_of(now=ALONE - 0.1).alone == frozenset()
    assert company_of(peers=(), now=0.0).alone == {ADDRESS, ANOTHER}
    assert company_of(since=None).alone == frozenset()
    assert company_of(peers=(), since=None).alone == frozenset()


def test_settled_as_soon_as_all_are_heard():
    """The time for it need not pass; a missing one is waited for."""
    new = {"since": 0.9, "at": 1.0}
    assert company_of(node(B, **new), node(C, **new), now=1.0).settled  # type: ignore[arg-type]  # times
    assert not company_of(node(B, **new), now=1.0).settled  # type: ignore[arg-type]  # times


def test_a_node_that_does_not_hear_this_one():
    """It gets packets for some seconds, in which nothing is reset; then it would take them for a client's."""
    young = company_of(node(B, since=9.0, hears=False), peers=(B,))
    assert (young.others[ADDRESS], young.settled) == ((B,), False)
    old = company_of(node(B, since=10.0 - ALONE, hears=False), peers=(B,))
    assert (old.others[ADDRESS], old.alone) == ((), {ADDRESS, ANOTHER})


def test_no_more_than_the_rules_have_places_for():
    """The first ones are asked, and nothing is reset: one that is not asked may have it."""
    names = [f"192.0.2.{each}" for each in range(100, 101 + MOST_OTHERS)]
    found = company_of(*map(node, names), peers=tuple(names))
    assert found.others[ADDRESS] == tuple(names[:MOST_OTHERS])
    assert not found.settled
