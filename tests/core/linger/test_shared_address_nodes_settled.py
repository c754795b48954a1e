"""Of which addresses a node knows where their connections are."""

from dataclasses import replace

import pytest

from appliance.core.linger.nodes import Keeper
from appliance.core.linger.served_addresses import ServedAddress
from appliance.core.linger.shared_address_nodes import LEARNING, Settled

pytestmark = pytest.mark.pure

VIP = "192.0.2.100"
SERVES = Keeper(node="192.0.2.1", mac=bytes(6), address=VIP, active=True, left_at=0.0, connections=1)
LEFT = replace(SERVES, active=False)
OURS = ServedAddress(address=VIP)


def test_it_is_settled_once_there_is_no_news():
    """News is that a node serves an address or has left it; how many connections it has is none."""
    settled = Settled()
    assert settled.at(0.0, keepers=[SERVES], ours=[]) == frozenset()
    assert settled.at(LEARNING, keepers=[replace(SERVES, connections=9)], ours=[]) == {VIP}
    assert settled.at(LEARNING, keepers=[LEFT], ours=[OURS]) == frozenset()
    assert settled.at(2 * LEARNING, keepers=[LEFT], ours=[OURS]) == {VIP}


def test_who_goes_is_no_news():
    """What a node that is gone had is nowhere else; without anybody who has something nothing is settled."""
    settled = Settled()
    settled.at(0.0, keepers=[LEFT], ours=[OURS])
    assert settled.at(LEARNING, keepers=[], ours=[OURS]) == {VIP}
    assert settled.at(LEARNING, keepers=[], ours=[]) == frozenset()


def test_who_comes_back_is_news():
    """A node that was gone may have connections that others do not know of."""
    settled = Settled()
    settled.at(0.0, keepers=[LEFT], ours=[])
    settled.at(LEARNING, keepers=[], ours=[])
    assert settled.at(LEARNING, keepers=[LEFT], ours=[]) == frozenset()
