"""Which other nodes this node does not hear, or is not heard by."""

from dataclasses import replace

import pytest

from appliance.core.linger.nodes import Keeper, Neighbour
from appliance.core.linger.silent_nodes import ALONE, Elsewhere, Listening, unheard
from appliance.wire.linger_report import ReportDrop

pytestmark = pytest.mark.pure

VIP, OTHER = "192.0.2.100", "192.0.2.2"
OURS = bytes(6)
LISTENING = Listening(since=0.0, macs=[OURS], peers=[], refused={})
HEARS = Neighbour(node=OTHER, since=0.0, heard=frozenset({OURS}))
SERVED = Elsewhere(name="api", peer=OTHER, addresses=[VIP])
ACTIVE = Keeper(node="192.0.2.9", mac=bytes(6), address=VIP, active=True, left_at=0.0, connections=0)


def found(
    listening: Listening = LISTENING,
    *neighbours: Neighbour,
    elsewhere: tuple[Elsewhere, ...] = (),
    keepers: tuple[Keeper, ...] = (),
    now: float = ALONE,
) -> list[str]:
    """Return what is said."""
    return list(unheard(listening, neighbours, elsewhere, keepers, now=now))


def test_nodes_that_hear_each_other():
    """Nothing is said of them, nor of a node that is alone."""
    assert found() == []
    assert found(replace(LISTENING, peers=[OTHER]), HEARS, elsewhere=(SERVED,)) == []


def test_a_node_that_serves_and_sends_nothing():
    """Its advertisements show it; where the one that serves is known by another address it is heard."""
    assert found(elsewhere=(SERVED,)) == [f"{OTHER} serves api and sends no reports"]
    assert found(elsewhere=(SERVED,), keepers=(ACTIVE,)) == []
    assert found(elsewhere=(SERVED,), keepers=(replace(ACTIVE, active=False),)) != []


def test_a_peer_that_sends_nothing():
    """Of those that are told one by one each has to send reports."""
    assert found(replace(LISTENING, peers=[OTHER])) == [f"{OTHER} sends no reports"]


@pytest.mark.parametrize(
    ("reason", "why"),
    [
        (ReportDrop.DIGEST, "signed with a key that this node does not accept"),
        (ReportDrop.VERSION, "of another version"),
        (ReportDrop.HOP_LIMIT, "sent through a router"),
    ],
)
def test_a_node_whose_reports_are_not_understood(reason: ReportDrop, why: str):
    """The reason is said, once for each node, unless other reports of it are understood."""
    refused = replace(LISTENING, refused={OTHER: reason})
    assert found(refused, elsewhere=(SERVED,)) == [f"reports of {OTHER} are {why}"]
    assert found(refused, HEARS) == []


def test_reports_that_are_sent_again_are_nobodys():
    """What was recorded, or waits for an answer, says nothing of a node."""
    assert (
        found(replace(LISTENING, refused={OTHER: ReportDrop.REPLAY, "192.0.2.3": ReportDrop.UNPROVED})) == []
    )


def test_a_node_that_does_not_hear_this_one():
    """It says itself whom it hears; it has some seconds for it."""
    deaf = replace(HEARS, heard=frozenset())
    assert found(LISTENING, deaf) == [f"{OTHER} receives no reports from this node: is its UDP port open?"]
    assert found(LISTENING, replace(deaf, since=1.0)) == []


def test_the_first_seconds():
    """Nobody has had time to be heard."""
    assert found(elsewhere=(SERVED,), now=ALONE - 0.1) == []
