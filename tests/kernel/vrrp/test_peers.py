"""What the other kernel tests of virtual IPs trust: two keepalived tell that losses and packets are seen."""

import pytest
from support.vrrp.keepalived import Instance, Keepalived
from support.vrrp.vip_client import VipClient, serve
from support.vrrp.vrrp_field import VIP, VIP6, Field

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "keepalived", "tcpdump", root=True),
    pytest.mark.slow("real timers of several routers"),
]


@pytest.mark.parametrize("address", [f"{VIP}/24", f"{VIP6}/64"])
def test_the_client_sees_a_crash(ground: Field, address: str):
    """A keepalived that dies with its machine costs probes, and another node answers afterwards."""
    serve(ground.one, ground.two)
    low = Instance(priority=100, addresses=(address,))
    high = Instance(priority=150, addresses=(address,))
    with Keepalived(ground.two, low), Keepalived(ground.one, high) as active:
        active.wait_for("MASTER")
        with VipClient(ground.client, address.partition("/")[0]) as client:
            client.wait_for_answer_by("one")
            begin = client.mark()
            client.wait_for_more(20)  # some of them are answered by the one that dies
            ground.one.unplug()
            active.kill()
            client.wait_for_answer_by("two")
            outage = client.stop().since(begin)
    assert outage.lost > 10
    assert outage.gap > 0.01
    assert outage.answerers == ["one", "two"]


def test_the_capture_sees_who_leaves(ground: Field):
    """A keepalived that stops says priority 0, and its successor announces itself five times."""
    with (
        Keepalived(ground.two, Instance(priority=100)),
        Keepalived(ground.one, Instance(priority=150)) as active,
    ):
        active.wait_for("MASTER")
        ground.wait_for_holder(ground.one)
        active.stop()
        ground.wait_for_holder(ground.two)
        ground.wait_for_adverts(1, source=ground.two.address)
    zeros = ground.capture.adverts(priority=0)
    assert {each.source for each in zeros} == {ground.one.address}
    assert ground.capture.adverts(checksum="wrong") == []
    told = ground.capture.announcements(mac=ground.two.mac, address=VIP)
    # keepalived says it five times more after garp_master_delay, 5 s.
    assert len([each for each in told if zeros[0].at < each.at < zeros[0].at + 4]) == 5
