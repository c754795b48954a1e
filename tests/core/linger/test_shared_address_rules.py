"""The scripts for shared addresses; what the kernel makes of them is shown in tests/kernel/linger."""

import pytest

from appliance.core.linger import ruleset, shared_address_rules
from appliance.core.linger.hops import Hops
from appliance.core.linger.shared_address_nodes import MOST_OTHERS
from appliance.core.linger.shared_address_rules import SharedElements
from appliance.core.linger.strays import StrayChanges
from appliance.wire.linger_strays import Ends
from appliance.wire.nftables.nftables_commands import Family

pytestmark = pytest.mark.pure

ADDRESS = "198.51.100.10"
ENDS: Ends = ("203.0.113.5", 4711, ADDRESS, 443)
TEXT = "203.0.113.5 . 4711 . 198.51.100.10 . 443"
MAC = bytes.fromhex("020000000002")


def made(family: Family, *, shared: bool) -> list[str]:
    """Return the lines that make the table."""
    return ruleset.make(family, [], port=29446, longest=60.0, times={}, shared=shared).splitlines()


@pytest.mark.parametrize("family", list(Family))
def test_without_shared_addresses_the_rules_are_as_before(family: Family):
    """Nothing of them is in the tables, so that nothing of virtual IPs changes."""
    assert not any("shared" in each or "strays" in each for each in made(family, shared=False))
    with_them = [each for each in made(family, shared=True) if "prerouting" in each]
    without = [each for each in made(family, shared=False) if "prerouting" in each]
    entry = f"add rule {family} lb_linger prerouting {family} daddr @shared goto shared"
    assert [each for each in with_them if each != entry] == without


@pytest.mark.parametrize("family", list(Family))
def test_elements_stay_when_rules_are_made_anew(family: Family):
    """Only chains are flushed: a restart of the program forgets no owner."""
    flushed = {each.split()[1] for each in made(family, shared=True) if each.startswith("flush")}
    assert flushed == {"chain"}


@pytest.mark.parametrize("family", list(Family))
def test_the_guard_forwards_and_notes_nothing(family: Family):
    """It has no time-outs of connections, and what it would note nobody reads."""
    guard = ruleset.guard(family, [], longest=60.0, shared=True)
    assert f"{family} daddr @shared goto shared" in guard
    assert f"dup to {family} daddr map @other{MOST_OTHERS}" in guard
    assert "add @" not in guard
    assert "timeout set" not in guard
    assert all(f"add @{name}" in "\n".join(made(family, shared=True)) for name in shared_address_rules.SETS)


def test_a_trial_with_shared_addresses():
    """It has their rules too, in a table of its own."""
    script = ruleset.trial(Family.IPV6, shared=True)
    assert "chain ip6 lb_linger_trial strays" in script
    assert "lb_linger " not in script


def test_elements_are_replaced():
    """Each node of an address is in a map of its own: a packet is sent to each of them."""
    shared = SharedElements(
        others={ADDRESS: ("192.0.2.2", "192.0.2.3")}, alone=frozenset({ADDRESS}), macs=frozenset({MAC})
    )
    lines = shared_address_rules.refresh("ip lb_linger", shared)
    assert lines[:10] == [
        "flush set ip lb_linger shared",
        f"add element ip lb_linger shared {{ {ADDRESS} timeout 24s }}",
        "flush set ip lb_linger sharing",
        "add element ip lb_linger sharing { 02:00:00:00:00:02 timeout 24s }",
        "flush set ip lb_linger alone",
        f"add element ip lb_linger alone {{ {ADDRESS} timeout 1s }}",
        "flush map ip lb_linger other1",
        f"add element ip lb_linger other1 {{ {ADDRESS} timeout 24s : 192.0.2.2 }}",
        "flush map ip lb_linger other2",
        f"add element ip lb_linger other2 {{ {ADDRESS} timeout 24s : 192.0.2.3 }}",
    ]
    assert lines[10:] == [f"flush map ip lb_linger other{each}" for each in range(3, MOST_OTHERS + 1)]


def test_they_come_with_the_others():
    """A refresh replaces both kinds, and is pressing while a node is alone with an address."""
    elements = ruleset.Elements(
        addresses=("192.0.2.100",),
        hops=Hops(direct={}, led={}),
        nodes=frozenset(),
        settled=frozenset(),
        shared=SharedElements(others={ADDRESS: ()}, alone=frozenset({ADDRESS})),
    )
    assert "flush set ip lb_linger shared" in ruleset.refresh(Family.IPV4, elements)
    assert elements.all_addresses == ("192.0.2.100", ADDRESS)
    assert elements.pressing


def test_what_was_learnt():
    """All is one transaction: what is removed goes first."""
    changes = StrayChanges(
        flushed=True, revoked=True, removed=(ENDS,), owned=((ENDS, "192.0.2.2"),), nobodys=(ENDS,)
    )
    assert shared_address_rules.learned(Family.IPV4, changes, table="lb_linger").splitlines() == [
        "flush map ip lb_linger owner",
        f"delete element ip lb_linger owner {{ {TEXT} }}",
        f"add element ip lb_linger owner {{ {TEXT} timeout 30s : 192.0.2.2 }}",
        "flush set ip lb_linger nobody",
        f"add element ip lb_linger nobody {{ {TEXT} timeout 120s }}",
    ]
    assert shared_address_rules.learned(Family.IPV4, StrayChanges(), table="lb_linger") == ""


def test_what_was_given():
    """Each connection is noted for as long as the set says; none is no script."""
    script = shared_address_rules.given(Family.IPV4, [ENDS], table="lb_linger")
    assert script == f"add element ip lb_linger given {{ {TEXT} }}"
    assert shared_address_rules.given(Family.IPV4, [], table="lb_linger") == ""


def test_who_was_told():
    """A node is not told again of a connection for some seconds."""
    script = shared_address_rules.told(Family.IPV4, [(ENDS, MAC)], table="lb_linger")
    assert script == f"add element ip lb_linger told {{ {TEXT} . 02:00:00:00:00:02 timeout 10s }}"
    assert shared_address_rules.told(Family.IPV4, [], table="lb_linger") == ""
