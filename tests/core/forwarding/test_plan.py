"""From snapshot and verdicts to what the kernel forwards."""

from dataclasses import replace
from random import Random

import pytest
from support.values import boards, snapshots
from support.values.snapshots import frontend, group, pool, server

from appliance.core.balancing.pool_state import PoolState
from appliance.core.forwarding.forwarded import Exchange, ForwardedFrontend
from appliance.core.forwarding.mark_numbers import Numbers
from appliance.core.forwarding.plan import families, forwarded, plan, taken_by_proxies
from appliance.model.server_states import AdminState, HealthVerdict
from appliance.model.snapshot.frontends import Bind, Forward, Frontend, Masquerade
from appliance.model.snapshot.pools import Pool
from appliance.model.snapshot.snapshot import Snapshot
from appliance.wire.nftables.nftables_commands import Family

pytestmark = pytest.mark.pure

MIXED = pool(
    servers=[server("a", host="192.0.2.1"), server("b", host="2001:db8::1"), server("c", host="192.0.2.3")]
)


def kernel(**changes: object) -> Frontend:
    """Return a frontend on every address that the kernel forwards."""
    return frontend("main", **{"forward": Forward.KERNEL, "binds": [Bind(host="::", port=80)], **changes})


def one(given: Frontend, servers: Pool = MIXED) -> Snapshot:
    """Return a snapshot with one frontend."""
    return snapshots.snapshot(groups=[group("api", frontends=[given])], pools=[servers])


def planned(
    given: Frontend, *, family: Family = Family.IPV4, up: tuple[str, ...] = (), networks: tuple[str, ...] = ()
) -> tuple[ForwardedFrontend, ...]:
    """Return the plan of one frontend whose servers of these names are up, others being checked."""
    state = PoolState(MIXED, workers=1, index=0, random=Random(1))  # noqa: S311  # unused
    state.observe({("pool", name): boards.health(name) for name in up})
    found = forwarded(one(given))
    return plan(family, found, {"pool": state}, number=Numbers().number, networks=networks)


def test_a_family_has_its_own_servers():
    """The version of IP of a server is that of its clients: nothing is translated between them."""
    (four,) = planned(kernel(), up=("a", "b", "c"))
    (six,) = planned(kernel(), family=Family.IPV6, up=("a", "b", "c"))

    assert [each.name for each in four.servers] == ["api/main pool/a", "api/main pool/c"]
    assert [(each.host, each.port) for each in six.servers] == [("2001:db8::1", 8080)]
    assert set(four.slots) == {each.number for each in four.servers}


def test_a_server_with_a_scope_is_none():
    """One that was found or resolved on a link: nft would refuse all servers for its sake."""
    linked = pool(servers=[server("a", host="fe80::1%eth0"), server("b", host="2001:db8::1")])
    state = PoolState(linked, workers=1, index=0, random=Random(1))  # noqa: S311  # unused
    state.observe({("pool", name): boards.health(name) for name in ("a", "b")})
    found = forwarded(one(kernel(), linked))
    (six,) = plan(Family.IPV6, found, {"pool": state}, number=Numbers().number, networks=("fe80::9/64",))

    assert [each.name for each in six.servers] == ["api/main pool/b"]
    assert set(six.slots) == {six.servers[0].number}


def test_a_frontend_is_only_where_it_has_binds():
    """One with an IPv4 address alone has nothing to do with IPv6."""
    given = kernel(binds=[Bind(host="192.0.2.200", port=80)])

    assert planned(given, family=Family.IPV6) == ()
    assert families(one(given), given) == (Family.IPV4,)


def test_who_drains_stays_among_the_servers():
    """It has no slots any more, and its address still: connections go on."""
    state = PoolState(MIXED, workers=1, index=0, random=Random(1))  # noqa: S311  # unused
    state.observe(
        {
            ("pool", "a"): boards.health("a", admin=AdminState.DRAIN, weight=0.0),
            ("pool", "c"): boards.health("c"),
        }
    )
    (found,) = plan(
        Family.IPV4, forwarded(one(kernel())), {"pool": state}, number=Numbers().number, networks=()
    )
    drained, other = found.servers

    assert set(found.slots) == {other.number}
    assert drained.name == "api/main pool/a"
    assert not found.waits


def test_of_several_backups_the_kernel_has_one_too():
    """While no other server is up, all slots are those of the first backup that is."""
    spares = [server(name, host=f"192.0.2.{at}", backup=True) for at, name in enumerate("bcd", start=2)]
    mine = pool(servers=[server("a", host="192.0.2.1"), *spares])
    state = PoolState(mine, workers=1, index=0, random=Random(1))  # noqa: S311  # unused
    down = {("pool", name): boards.health(name, verdict=HealthVerdict.DOWN, weight=0.0) for name in "ab"}
    state.observe(down | {("pool", name): boards.health(name) for name in "cd"})
    (found,) = plan(
        Family.IPV4, forwarded(one(kernel(), mine)), {"pool": state}, number=Numbers().number, networks=()
    )

    assert set(found.slots) == {found.servers[2].number}


def test_clients_wait_for_first_checks():
    """Nobody is refused because checks have not ended yet."""
    (found,) = planned(kernel())

    assert (found.slots, found.waits) == ((), True)


SHARED = [(Masquerade.ALWAYS, ()), (Masquerade.AUTO, ("192.0.2.0/24",))]


@pytest.mark.parametrize(("masquerade", "shared"), SHARED)
def test_networks_of_servers_are_masked(masquerade: Masquerade, shared: tuple[str, ...]):
    """With `auto` those in which we are, too, and no others; with `always` there is nothing to ask."""
    given = kernel(masquerade=masquerade)
    (found,) = planned(given, up=("a",), networks=("192.0.2.9/24", "198.51.100.1/24", "fd00::1/64"))

    assert found.servers[0].networks == shared


def test_own_networks_that_overlap_are_one():
    """A set of the kernel takes no element that another one holds."""
    own = ("192.0.2.9/16", "192.0.2.10/24", "192.0.2.9/24")
    (found,) = planned(kernel(masquerade=Masquerade.AUTO), up=("a",), networks=own)

    assert found.servers[0].networks == ("192.0.0.0/16",)


def test_versions_of_a_frontend():
    """Those of its servers, where their addresses are known; a name may have any."""
    four = pool(servers=[server("a", host="192.0.2.1")])
    named = pool(servers=[server("a", host="a.example.com")])

    assert families(one(kernel(), four), kernel()) == (Family.IPV4,)
    assert families(one(kernel(), named), kernel()) == tuple(Family)
    assert families(one(kernel(pool="gone")), kernel(pool="gone")) == tuple(Family)


def test_what_a_proxy_takes_is_forwarded_until_it_listens():
    """A frontend whose bind a proxy has next leaves; one that is gone, or stays, does not."""
    before = forwarded(one(kernel()))
    proxied = one(frontend("main", binds=[Bind(host="192.0.2.200", port=80)]))
    elsewhere = one(frontend("main", binds=[Bind(host="192.0.2.200", port=81)]))

    assert [(each.name, each.leaving) for each in taken_by_proxies(before, proxied)] == [("api/main", True)]
    assert taken_by_proxies(before, elsewhere) == ()
    assert taken_by_proxies(before, one(kernel())) == ()
    assert forwarded(None) == ()


EVERY_443, EVERY_80 = Bind(host="::", port=443), Bind(host="::", port=80)


@pytest.mark.parametrize(("name", "leaving"), [("tls", "api/main"), ("main", "api/main leaving [::]:80")])
def test_a_frontend_that_is_split_leaves_what_the_proxy_takes(name: str, leaving: str):
    """Only that bind is forwarded until the proxy listens, whatever the kernel's part is called."""
    before = forwarded(one(kernel(binds=(EVERY_443, EVERY_80))))
    tls = replace(kernel(binds=(Bind(host="0.0.0.0", port=443),)), name=name)
    web = frontend("web", binds=(EVERY_80,))
    wanted = snapshots.snapshot(groups=[group("api", frontends=[tls, web])], pools=[MIXED])
    (found,) = taken_by_proxies(before, wanted)

    assert (found.name, found.config.binds, found.leaving) == (leaving, (EVERY_80,), True)
    assert taken_by_proxies([found], wanted) == (found,)


def test_virtual_ips_move_with_connections_that_are_synced():
    """Servers see those of the family, and nodes talk on the interface of the first; else nothing is so."""
    routers = [
        snapshots.virtual_router(
            "four", addresses=("192.0.2.200/24",), interface="eth0", peers=("192.0.2.12",)
        ),
        snapshots.virtual_router("six", addresses=("2001:db8::200/64",), family=6, interface="eth1"),
    ]
    made = replace(one(kernel(sync=True)), virtual_routers=tuple(routers))
    pools = {"pool": PoolState(MIXED, workers=1, index=0, random=Random(0))}  # noqa: S311  # no secret
    for family, address in ((Family.IPV4, "192.0.2.200"), (Family.IPV6, "2001:db8::200")):
        (found,) = plan(family, forwarded(made), pools, number=Numbers().number, networks=())
        assert found.virtual == (address,)
        assert found.exchange == Exchange(interface="eth0", peers=("192.0.2.12",))
    (alone,) = forwarded(one(kernel(sync=True)))
    assert (alone.virtual, alone.exchange) == ((), None)
    (plain,) = forwarded(replace(made, groups=one(kernel()).groups))
    assert (plain.virtual, plain.exchange) == ((), None)
