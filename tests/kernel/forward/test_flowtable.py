"""Flowtables beside the rules: what they change, and that a kernel without them forwards all the same."""

import contextlib

import pytest
from support.forward.flowtables import offloaded, offloaded_session, software_or_skip
from support.forward.forward_field import (
    PORT,
    SERVER_PORT,
    ForwardField,
    wait_for_servers,
)
from support.network.namespaces import INTERFACE
from support.processes.waiting import wait_until
from support.values.snapshots import frontend, pool

from appliance.core.forwarding.forwarded import ForwardedFrontend, ForwardedServer
from appliance.core.forwarding.mark_numbers import MARK, MARK_MASK
from appliance.core.forwarding.plan import SLOTS
from appliance.forward.ended_connections import end_connections, forget
from appliance.forward.kernel_tables import KernelTables
from appliance.model.snapshot.frontends import Bind, Flowtable, Forward
from appliance.net.netlink.conntrack import Conntrack
from appliance.net.netlink.networks import interfaces
from appliance.wire.nftables.nftables_commands import Family

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nft", root=True)]

ALL = ("s1", "s2", "s3")


@pytest.mark.slow("whole appliances on a segment of their own")
def test_what_an_interface_cannot_do_is_refused_and_stops_nothing(balanced: ForwardField):
    """`hardware` on veth: reload and `check --here` say why; a start forwards by the rules, and warns."""
    with balanced.appliance(balanced.config(flowtable="hardware")) as appliance:
        wait_for_servers(appliance, *ALL)
        assert set(balanced.shares(9)) == set(ALL)
        wait_until(lambda: appliance.events("flowtable-failed"), what="the warning")
        assert appliance.status()["ok"], appliance.status()["problems"]
        answer = appliance.reload(balanced.config(flowtable="hardware", max_connections=77))
        assert not answer["ok"]
        assert "api.frontends.main.flowtable" in str(answer["errors"])
        assert f"no hardware flowtable on {INTERFACE}" in str(answer["errors"])
        with balanced.balancer.inside():
            checked = appliance.command("check", "--here", check=False)
        assert "no hardware flowtable" in checked.stdout + checked.stderr


@pytest.mark.promise("kernel", "flowtables")
@pytest.mark.parametrize("version", [4, 6])
def test_the_kernel_gives_connections_back(balanced: ForwardField, version: int):
    """The rules alone, without programs: put into a flowtable, taken out, deleted, and both ends reset."""
    software_or_skip(balanced)
    balanced.version = version
    hosts = [each.address6 if version == 6 else each.address for each in balanced.servers.values()]
    given = _frontend(hosts)
    family = Family.IPV6 if version == 6 else Family.IPV4
    tables = KernelTables()
    with balanced.balancer.inside():
        assert tables.install(family, [given])
        tables.offload(family, [given], interfaces())
    sessions = [offloaded_session(balanced, balanced.address) for _ in range(3)]
    with balanced.balancer.inside():
        tables.offload(family, [given], interfaces())
        assert tables.stand()
        assert tables.stop_offload()
        assert dict(end_connections({2: "s1"})) == {"s1": 1}
        tables.offload(family, [given], interfaces())
    (lost,) = [each for each in sessions if each.server == "s1"]
    assert lost.ends() == "reset"
    kept = [each for each in sessions if each is not lost]

    def asked() -> bool:
        assert [each.asks() for each in kept] == [each.server for each in kept]
        return offloaded(balanced) == 2

    wait_until(asked, what="the others are in the flowtable again")
    with balanced.balancer.inside(), contextlib.closing(Conntrack()) as conntrack:
        tables.remove()
        forget(conntrack, MARK, MARK_MASK, offloaded=True)
    assert (balanced.nft(), balanced.conntrack()) == ("", [])
    for each in sessions:
        each.close()


def _frontend(hosts: list[str]) -> ForwardedFrontend:
    """Return a frontend with a flowtable, and these servers by turns."""
    binds = [Bind(host="::", port=PORT)]
    config = frontend("main", forward=Forward.KERNEL, binds=binds, flowtable=Flowtable.SOFTWARE)
    servers = tuple(
        ForwardedServer(number=number, name=f"s{number}", host=host, port=SERVER_PORT)
        for number, host in enumerate(hosts, 2)
    )
    slots = tuple(each.number for each in servers) * SLOTS
    return ForwardedFrontend(
        number=1, name="main", config=config, pool=pool(), servers=servers, slots=slots[:SLOTS], waits=False
    )
