"""The kernel's tables of neighbours, as they name who is to be told of."""

import pytest
from support.network.namespaces import INTERFACE, Segment

from appliance.net.netlink.links import Links
from appliance.net.netlink.neighbours import PAUSE, Neighbours
from appliance.net.netlink.netlink import Requests

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", root=True)]

MAC = "02:00:00:00:00:77"


@pytest.mark.promise("kernel", "neighbours (netlink)")
def test_a_neighbour_is_named_by_its_addresses():
    """Both families, of this interface and this hardware address alone."""
    with Segment() as segment:
        node = segment.node("one")
        for address in ("192.0.2.77", "fd00::77"):
            node.ip("neighbour", "add", address, "lladdr", MAC, "dev", INTERFACE)
        node.ip("neighbour", "add", "192.0.2.78", "lladdr", "02:00:00:00:00:78", "dev", INTERFACE)
        with node.inside(), Links() as links, Requests() as requests:
            index = links.state(INTERFACE).index
            known = Neighbours(requests)
            mac = bytes.fromhex(MAC.replace(":", ""))
            assert set(known.addresses_of(index, mac, 10.0)) == {"192.0.2.77", "fd00::77"}
            assert known.addresses_of(index + 1, mac, 10.0) == ()


def test_the_tables_are_not_read_for_each_question():
    """A flood of made-up answers is a flood of questions; the adverts do not wait for it."""
    with Segment() as segment:
        node = segment.node("one")
        with node.inside(), Links() as links, Requests() as requests:
            index = links.state(INTERFACE).index
            known = Neighbours(requests)
            mac = bytes.fromhex(MAC.replace(":", ""))
            assert known.addresses_of(index, mac, 10.0) == ()
            node.ip("neighbour", "add", "192.0.2.77", "lladdr", MAC, "dev", INTERFACE)
            assert known.addresses_of(index, mac, 10.0 + PAUSE / 2) == ()
            assert known.addresses_of(index, mac, 10.0 + PAUSE) == ("192.0.2.77",)
