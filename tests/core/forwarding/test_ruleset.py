"""The rules as text: what changes, and what is left alone. That the kernel takes them, tests/kernel shows."""

import pytest
from support.values.snapshots import frontend, pool

from appliance.core.forwarding import ruleset
from appliance.core.forwarding.forwarded import Exchange, ForwardedFrontend, ForwardedServer
from appliance.model.snapshot.frontends import Bind, Forward, Masquerade
from appliance.model.snapshot.pools import Balance
from appliance.wire.nftables.nftables_commands import Family

pytestmark = pytest.mark.pure

SERVER = ForwardedServer(number=2, name="api/main pool/a", host="192.0.2.1", port=8080)


def forwarded(
    *,
    balance: Balance = Balance.ROUNDROBIN,
    hash_on: tuple[str, ...] = ("source",),
    server: ForwardedServer = SERVER,
    waits: bool = False,
    leaving: bool = False,
    virtual: tuple[str, ...] = (),
    exchange: Exchange | None = None,
    **changes: object,
) -> ForwardedFrontend:
    """Return a frontend with number 1 and one server."""
    config = frontend("main", **{"forward": Forward.KERNEL, "binds": [Bind(host="::", port=80)], **changes})
    return ForwardedFrontend(
        number=1,
        name="api/main",
        config=config,
        pool=pool(balance=balance, hash_on=hash_on),
        servers=(server,),
        slots=(2, 2, 2),
        waits=waits,
        leaving=leaving,
        virtual=virtual,
        exchange=exchange,
    )


def table(
    given: ForwardedFrontend, family: Family = Family.IPV4, present: dict[int, str] | None = None
) -> str:
    """Return the script of one frontend."""
    return ruleset.table(family, [given], present=present or {}, times={})


def test_a_bind_is_an_address_or_a_port():
    """Every address is one rule by port; a single one has its own."""
    every, single = table(forwarded()), table(forwarded(binds=[Bind(host="192.0.2.200", port=80)]))

    assert "add element ip lb_forward ports { 80 : goto f1 }" in every
    assert "add element ip lb_forward entries { 192.0.2.200 . 80 : goto f1 }" in single
    assert "bound_ports { 80 }" in every


def test_times_of_the_kernel_hold():
    """Where a policy leaves one out, nft fills in constants of its own, so none is left out."""
    script = ruleset.table(Family.IPV4, [forwarded()], present={}, times={"established": 600, "unack": 9})
    assert "policy = { established: 600, unack: 9, close: 1, time_wait: 2 }" in script


@pytest.mark.parametrize("family", list(Family))
def test_connections_that_have_ended_are_forgotten_soon(family: Family):
    """Those that arrive and those of the node itself, forwarded or not: one rule each for a first packet."""
    setting = [line for line in table(forwarded(), family).splitlines() if "ct timeout set" in line]
    assert [each.split()[4] for each in setting] == ["stray", "count_own"]
    assert not any("mark" in each or "addr" in each for each in setting)


def test_who_leaves_is_only_taken_where_nobody_listens():
    """Its address is in the set for that, and packets of unknown connections are the proxy's."""
    found = table(forwarded(leaving=True))

    assert "leaving_ports { 80 }" in found
    assert "bound_ports { 80 }" not in found


def test_a_chain_that_is_there_already_is_left_alone():
    """`ct count` would forget what it has counted."""
    given = forwarded()
    there = {1: ruleset.fingerprint(Family.IPV4, given)}

    assert "flush chain ip lb_forward f1\n" in table(given)
    assert "flush chain ip lb_forward f1\n" not in table(given, present=there)
    assert "flush chain ip lb_forward f1\n" in table(forwarded(max_connections=7), present=there)


def test_access_lists_are_sets_of_the_family():
    """Each version of IP has its own networks; a list of the other one alone lets nobody in."""
    found = table(forwarded(allow=("10.0.0.0/8", "2001:db8::/32"), deny=("10.0.0.66",)))

    assert "add element ip lb_forward f1_allow { 10.0.0.0/8 }" in found
    assert "add element ip lb_forward f1_deny { 10.0.0.66/32 }" in found
    assert "ip saddr @f1_deny counter name f1_denied reject with tcp reset" in found
    assert "ip saddr != @f1_allow" in found


@pytest.mark.parametrize(
    ("balance", "hash_on", "choice"),
    [
        (Balance.ROUNDROBIN, (), "numgen inc mod 1021"),
        (Balance.RANDOM, (), "numgen random mod 1021"),
        (Balance.SOURCE, (), "jhash ip saddr mod 1021 seed 27746"),
        (Balance.HASH, ("source", "destination-port"), "jhash ip saddr . tcp dport mod 1021 seed 27746"),
    ],
)
def test_each_algorithm_has_its_expression(balance: Balance, hash_on: tuple[str, ...], choice: str):
    """In turn, by chance, or by a hash that two nodes compute alike."""
    assert f"ct mark set {choice} map @f1_slots" in table(forwarded(balance=balance, hash_on=hash_on))


def test_who_is_masked():
    """Everybody's connections, or those from networks that are shared."""
    shared = ForwardedServer(number=2, name="s", host="192.0.2.1", port=8080, networks=("192.0.2.0/24",))

    assert "masked { 0x6c620002 }" in table(forwarded())
    auto = table(forwarded(server=shared, masquerade=Masquerade.AUTO))
    assert "masked {" not in auto.replace("masked { type", "")
    assert "shared { 0x6c620002 . 192.0.2.0/24 }" in auto


def test_ipv6_has_its_own_words():
    """Fields, types and the loopback address."""
    six = ForwardedServer(number=2, name="s", host="2001:db8::1", port=8080)
    found = table(forwarded(server=six, balance=Balance.SOURCE), Family.IPV6)

    assert "ip6 daddr ::1 return" in found
    assert "{ 0x6c620002 : 2001:db8::1 . 8080 }" in found
    assert "jhash ip6 saddr" in found


def test_only_slots_that_move_are_written():
    """Nothing for the same ones, all of them where nobody knows what is there."""
    name = "ip lb_forward f1_slots"

    assert ruleset.slot_changes(Family.IPV4, 1, (2, 2), before=(2, 2)) == ""
    assert ruleset.slot_changes(Family.IPV4, 1, (2, 3), before=(2, 2)) == (
        f"delete element {name} {{ 1 }}\nadd element {name} {{ 1 : 0x6c620003 }}\n"
    )
    assert ruleset.slot_changes(Family.IPV4, 1, (2,), before=None) == (
        f"flush map {name}\nadd element {name} {{ 0 : 0x6c620002 }}\n"
    )
    assert ruleset.slot_changes(Family.IPV4, 1, (), before=(2,)) == f"flush map {name}\n"


def test_without_a_server_clients_are_refused_or_wait():
    """Refused at once; while first checks are under way their kernels try again."""
    assert "f1_unserved reject with tcp reset" in ruleset.without_server(Family.IPV4, forwarded())
    assert "f1_unserved drop" in ruleset.without_server(Family.IPV4, forwarded(waits=True))


def test_what_is_gone_is_removed():
    """A frontend with its chains, map and sets; counters of servers."""
    found = ruleset.forget(Family.IPV4, [1], ["s2_in"]).splitlines()

    assert found[0] == "flush chain ip lb_forward f1"
    assert "delete set ip lb_forward f1_deny" in found
    assert found[-1] == "delete counter ip lb_forward s2_in"
    assert ruleset.forget(Family.IPV4, [], []) == ""


def test_servers_see_the_virtual_ip_that_moves():
    """With `sync` the next node has to receive their replies; without it they see this node's address."""
    found = table(forwarded(virtual=("192.0.2.200",)))
    assert f"add element ip lb_forward virtual {{ {ruleset.mark(2)} . 192.0.2.200 }}" in found
    translated = found.index("snat to ct original ip daddr")
    assert translated < found.index("ct mark @masked masquerade")
    assert "add element ip lb_forward virtual" not in table(forwarded())


def test_what_a_node_has_missed_is_not_answered_by_a_reset():
    """Packets of connections that another node has had wait for its report."""
    found = table(forwarded(virtual=("192.0.2.200",)))
    assert "add element ip lb_forward moving { 192.0.2.200 }" in found
    assert "ct state invalid meta l4proto tcp ip daddr @moving drop" in found


def test_strangers_tell_nothing_of_connections():
    """Only who is on the interface does, and if there are peers only they do."""
    every = table(forwarded(exchange=Exchange(interface="eth0", peers=())))
    assert 'lb_forward strangers udp dport 3780 iifname != "eth0" drop' in every
    assert "udp dport 3780 ip saddr" not in every
    single = Exchange(interface="eth0", peers=("10.0.0.12", "fe80::1%eth0"))
    assert "udp dport 3780 ip saddr != { 10.0.0.12 } drop" in table(forwarded(exchange=single))
    assert "udp dport 3780 ip6 saddr != { fe80::1 } drop" in table(forwarded(exchange=single), Family.IPV6)
    assert "udp dport 3780" not in table(forwarded())
