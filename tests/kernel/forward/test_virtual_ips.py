"""Two nodes with virtual IPs, where the kernel forwards: who does so, and what ends when."""

import pytest
from support.forward.forward_field import wait_for_servers
from support.forward.forward_pair import VIPS, ForwardPair
from support.processes.waiting import wait_until

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "nft", "tcpdump", root=True),
    pytest.mark.slow("whole appliances on a segment of their own"),
]

_OTHER = pytest.mark.full("the same in the other version of IP")
_IPV4 = pytest.mark.parametrize("address", [VIPS[0], pytest.param(VIPS[1], marks=_OTHER)])
_IPV6 = pytest.mark.parametrize("address", [pytest.param(VIPS[0], marks=_OTHER), VIPS[1]])


@pytest.mark.promise("docs/forward.md", "the node that holds the virtual IP forwards")
@_IPV4
def test_the_active_node_forwards_and_a_lost_one_is_replaced(forward_pair: ForwardPair, address: str):
    """Both nodes are ready; cut off from the network one loses its clients to the other.

    Connections through it are reset by the other one at their next packet, as with keepalived and HAProxy.
    """
    pair = forward_pair
    with pair.appliances() as (one, two):
        for each in (one, two):
            wait_for_servers(each, *pair.names)
        pair.wait_for_holder(pair.first)
        session = pair.first.session(address)
        assert session.asks() == session.server
        pair.first.balancer.isolate()
        wait_until(lambda: pair.second.balancer.holds(address), what=f"it has {address}", timeout=20.0)
        wait_until(lambda: pair.second.ask(address, timeout=2.0) in pair.names, what="it serves")
        assert pair.second.conntrack()
        session.socket.sendall(b"?")
        assert session.ends() == "reset"
        session.close()


@_IPV6
def test_a_planned_move_refuses_nobody(forward_pair: ForwardPair, address: str):
    """`vip move`: new connections are answered before, after and meanwhile, by the rules of either node."""
    pair = forward_pair
    with pair.appliances() as (one, two), pair.first.clients(address) as clients:
        for each in (one, two):
            wait_for_servers(each, *pair.names)
        pair.wait_for_holder(pair.first)
        clients.wait_for_more(20)
        pair.move(one)
        pair.wait_for_holder(pair.second)
        clients.wait_for_more(50)
        assert pair.second.conntrack()
        # What was under way at that moment is over; a new connection never finds nobody.
        assert "!refused" not in clients.stop().errors


@_IPV4
def test_reloads_and_restarts_beside_a_virtual_ip_end_nothing(forward_pair: ForwardPair, address: str):
    """A reload, a restart of `forward` and a killed supervisord leave rules, address and connections."""
    pair = forward_pair
    with pair.appliances(advert="2s") as (one, two):
        for each in (one, two):
            wait_for_servers(each, *pair.names)
        pair.wait_for_holder(pair.first)
        session = pair.first.session(address)
        wanted = pair.config(priority=150, advert="2s", allow=["192.0.2.0/24", "fd00::/64"])
        assert one.reload(wanted)["ok"]
        assert session.asks() == session.server
        old = one.program_pid("forward")
        assert old is not None
        one.supervisorctl("restart", "forward")
        one.wait_for_restart("forward", old)
        assert session.asks() == session.server
        old = one.program_pid("forward")
        assert old is not None
        with pair.first.balancer.inside():
            one.crash()
        one.wait_for_restart("forward", old)
        assert session.asks() == session.server
        assert pair.first.ask(address) in pair.names
        assert pair.first.balancer.holds(address)
        assert not pair.second.balancer.holds(address)
        session.close()
