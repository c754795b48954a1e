"""The scripts for nftables; what the kernel makes of them is shown by tests/kernel/linger/test_moves.py."""

import pytest

from appliance.core.linger import ruleset
from appliance.core.linger.hops import Hops
from appliance.wire.nftables.nftables_commands import Family

pytestmark = pytest.mark.pure

NOTHING = Hops(direct={}, led={})


@pytest.mark.parametrize("family", list(Family))
def test_rules_of_each_interface(family: Family):
    """Every interface has its rules, and nothing is flushed but the rules themselves."""
    script = ruleset.make(
        family, [("eth0", "eth0"), ("vrrp4.2.42", "eth0")], port=29446, longest=3600.0, times={}
    )
    for interface in ("eth0", "vrrp4.2.42"):
        rule = f'iifname "{interface}" ether saddr != @nodes dup to {family.value} daddr map @direct'
        assert f'{rule} device "eth0" drop' in script
    assert "timeout 3600s" in script
    flushed = [line.split()[1] for line in script.splitlines() if line.startswith("flush")]
    assert set(flushed) == {"chain"}


def test_a_trial_touches_nothing_of_ours():
    """It has a table of its own, as the kernel would compare ours with it."""
    assert "table ip lb_linger_trial" in ruleset.trial(Family.IPV4)
    assert "lb_linger " not in ruleset.trial(Family.IPV4)


@pytest.mark.parametrize("family", list(Family))
def test_connections_that_have_ended_are_forgotten_soon(family: Family):
    """New ones of any address get time-outs of our own, by the first rule in either direction."""
    script = ruleset.make(family, [("eth0", "eth0")], port=29446, longest=3600.0, times={}, shared=True)
    assert f"l3proto {family.value}; policy = {{ close: 1, time_wait: 2 }}" in script
    for chain, verdict in (("prerouting", " return"), ("output", "")):
        at = f"add rule {family} lb_linger {chain} "
        first = next(line for line in script.splitlines() if line.startswith(at))
        assert first.startswith(f"{at}ct state new tcp flags")
        assert first.endswith(f'== syn ct timeout set "ended"{verdict}')


@pytest.mark.parametrize("family", list(Family))
def test_what_keeps_virtual_ips_here_needs_no_room(family: Family):
    """Advertisements and reports are not tracked in either direction, before conntrack sees them."""
    script = ruleset.make(family, [("eth0", "eth0")], port=29446, longest=3600.0, times={})
    for chain in ("untracked_in", "untracked_out"):
        assert f"add rule {family} lb_linger {chain} meta l4proto 112 notrack" in script
        assert f"add rule {family} lb_linger {chain} udp dport 29446 notrack" in script
    assert script.count("priority -300") == 2


@pytest.mark.parametrize("family", list(Family))
def test_the_guard_is_the_same_behind_the_rules(family: Family):
    """It belongs to us, begins anew, comes after the rules, and leaves time-outs and tracking to them."""
    entrances = [("eth0", "eth0"), ("vrrp4.2.42", "eth0")]
    guard = ruleset.guard(family, entrances, longest=3600.0)
    made = ruleset.make(family, entrances, port=29446, longest=3600.0, times={})
    owned = f"add table {family} lb_linger_guard {{ flags owner; }}"
    assert guard.splitlines()[:3] == [owned, f"delete table {family} lb_linger_guard", owned]
    assert "hook prerouting priority -159" in guard
    assert "hook prerouting priority -160" in made
    assert "timeout set" not in guard
    assert "notrack" not in guard
    led = [each for each in made.splitlines() if " strangers " in each]
    assert [each.replace("lb_linger", "lb_linger_guard") for each in led] == [
        each for each in guard.splitlines() if " strangers " in each
    ]


def test_elements_are_renewed():
    """All elements come with a time-out, in the place of those that were there."""
    hops = Hops(
        direct={"192.0.2.100": "192.0.2.1"}, led={(bytes.fromhex("020000000001"), "192.0.2.100"): "192.0.2.2"}
    )
    elements = ruleset.Elements(
        addresses=("192.0.2.100",),
        hops=hops,
        nodes=frozenset({bytes.fromhex("020000000001")}),
        settled=frozenset({"192.0.2.100"}),
    )
    script = ruleset.refresh(Family.IPV4, elements)
    guard = ruleset.refresh(Family.IPV4, elements, table=ruleset.GUARD)
    assert guard == script.replace("lb_linger", "lb_linger_guard")
    assert script.splitlines() == [
        "flush set ip lb_linger served",
        "add element ip lb_linger served { 192.0.2.100 timeout 24s }",
        "flush set ip lb_linger nodes",
        "add element ip lb_linger nodes { 02:00:00:00:00:01 timeout 24s }",
        "flush set ip lb_linger settled",
        "add element ip lb_linger settled { 192.0.2.100 timeout 1s }",
        "flush map ip lb_linger direct",
        "add element ip lb_linger direct { 192.0.2.100 timeout 24s : 192.0.2.1 }",
        "flush map ip lb_linger onward",
        "add element ip lb_linger onward { 02:00:00:00:00:01 . 192.0.2.100 timeout 24s : 192.0.2.2 }",
    ]


def test_nothing_to_lead():
    """Without nodes and addresses everything is emptied."""
    nothing = ruleset.Elements(addresses=(), hops=NOTHING, nodes=frozenset(), settled=frozenset())
    script = ruleset.refresh(Family.IPV6, nothing)
    assert [line.split()[0] for line in script.splitlines()] == ["flush"] * 5


def test_connections_from_before():
    """They are named by both ends; where there are none, nothing is to be done."""
    script = ruleset.own(Family.IPV4, [("192.0.2.9", 4711, "192.0.2.100", 443)])
    assert script == "add element ip lb_linger ours { 192.0.2.9 . 4711 . 192.0.2.100 . 443 }"
    assert ruleset.own(Family.IPV4, []) == ""


def test_connections_of_another_node_are_unlisted():
    """Those that were never listed are no error: each is added before it is deleted."""
    script = ruleset.change_owner(Family.IPV4, ours=[], others=[("192.0.2.9", 4711, "192.0.2.100", 443)])
    added, deleted = script.splitlines()
    assert added == "add element ip lb_linger ours { 192.0.2.9 . 4711 . 192.0.2.100 . 443 }"
    assert deleted == added.replace("add", "delete", 1)
    assert ruleset.change_owner(Family.IPV4, ours=[], others=[]) == ""
