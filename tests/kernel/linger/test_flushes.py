"""`nft flush ruleset` on a node that leads packets: connections of another node do not notice."""

import pytest
from support.linger.linger_field import (
    COUNT,
    PERIOD,
    VIP,
    VIP6,
    LingerNode,
    SteadyClients,
    moved,
    pair,
    who_answers,
)
from support.processes.waiting import wait_until

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nft", root=True)]

_GUARD = "lb_linger_guard"
_FLUSHES = 20


def _leads(serving: LingerNode, vip: str) -> bool:
    """Say whether a node's rules lead packets to another node, and those of their guard."""
    family = "ip6" if ":" in vip else "ip"
    return all(
        f"{vip} timeout" in serving.node.run(["nft", "list", "map", family, table, "direct"], check=False)
        for table in ("lb_linger", _GUARD)
    )


@pytest.mark.promise("docs/virtual-ips.md", "`nft flush ruleset` ends none of them")
@pytest.mark.parametrize("vip", [VIP, pytest.param(VIP6, marks=pytest.mark.slow("the same way as above"))])
def test_a_flush_ends_no_connection_of_another_node(vip: str):
    """Once and again and again, with traffic all the time; the rules come back, a stop leaves none."""
    with pair(vip=vip) as (client, one, two):
        with SteadyClients(client, count=COUNT, period=PERIOD, vip=vip) as clients:
            moved(one, two, vip)
            wait_until(lambda: _leads(two, vip), what="two leads to one")
            for _ in range(_FLUSHES):
                two.node.run(["nft", "flush", "ruleset"])
                clients.ask()
            wait_until(lambda: _leads(two, vip), what="the rules are back")
            assert who_answers(client, vip) == "two"
            seen = clients.end()
        assert (seen["ended"], seen["by"]) == (0, {"one": COUNT})
        assert two.appliance.events("linger-rules-gone")
        assert not two.appliance.events("linger-failed")


@pytest.mark.slow("whole appliances on a segment of their own")
def test_the_guard_goes_and_comes_with_the_program():
    """A kill takes it away and leaves the rules; the next process makes it anew, and a flush ends nothing."""
    with pair() as (client, one, two), SteadyClients(client, count=COUNT, period=PERIOD) as clients:
        moved(one, two)
        before = two.appliance.kill("linger")
        wait_until(lambda: _GUARD not in two.nft(), what="the kernel has taken the guard away")
        assert "table ip lb_linger {" in two.nft()
        two.appliance.wait_for_restart("linger", before)
        wait_until(lambda: _leads(two, VIP), what="the guard is there again")
        two.node.run(["nft", "flush", "ruleset"])
        clients.ask()
        seen = clients.end()
        assert (seen["ended"], seen["by"]) == (0, {"one": COUNT})
        two.appliance.terminate()
        two.appliance.wait(patience=60.0)
        assert "lb_linger" not in two.nft()
