"""When a node has the connections of the others, when it requests them, and when it sends its own."""

from dataclasses import replace

import pytest

from appliance.core.forwarding.sync_state import (
    LONGEST,
    MISSED,
    QUIET,
    SENT_AGAIN,
    SILENT,
    SyncPhase,
    SyncRole,
    SyncState,
)
from appliance.wire.conntrackd.conntrackd_control import ConntrackdQuestion, ConntrackdStatistics

pytestmark = pytest.mark.pure

NONE = ConntrackdStatistics(
    created=0, updated=0, destroyed=0, failed=0, sent=0, received=0, packets=0, errors=0, lost=0
)


class Node:
    """A node's state, with what conntrackd would count."""

    def __init__(self) -> None:
        self.state = SyncState()
        self.counted = NONE

    def look(
        self, now: float, *, received: int = 0, new: int = 0, pid: int = 7, role: SyncRole = SyncRole.WAITS
    ) -> ConntrackdQuestion | None:
        """Look at `now`, when so many more packets and connections have come."""
        before = self.counted
        self.counted = replace(before, packets=before.packets + received, created=before.created + new)
        return self.state.look(pid, self.counted, now, role=role, expires=432_000.0)


def test_a_node_requests_all_and_is_ready_when_nothing_new_comes():
    """It requests them once it receives a packet; then new connections prolong the wait."""
    node = Node()
    assert node.look(0.0) is None
    assert (node.state.phase, node.state.ready) == (SyncPhase.LISTENING, False)
    assert node.look(1.0, received=1) is ConntrackdQuestion.REQUEST_ALL
    assert node.look(1.5, received=9, new=500) is None
    assert node.look(2.0 + QUIET - 0.6, received=9, new=500) is None
    assert (node.state.phase, node.state.ready) == (SyncPhase.RECEIVING, False)
    assert node.look(2.4 + QUIET) is None
    assert (node.state.phase, node.state.ready, node.state.since) == (SyncPhase.SYNCED, True, 2.4 + QUIET)


def test_a_busy_node_delays_the_other_no_longer_than_the_bound():
    """There are new connections all the time."""
    node = Node()
    node.look(0.0)
    node.look(1.0, received=1)
    for step in range(int(LONGEST * 2)):
        node.look(1.0 + step / 2, received=1, new=9)
    assert not node.state.ready
    node.look(1.0 + LONGEST, received=1, new=9)
    assert node.state.ready


def test_a_node_that_receives_nothing_is_alone_and_requests_all_later():
    """It waits for a while, and takes addresses then; what it missed it asks for as soon as it can."""
    node = Node()
    node.look(0.0)
    node.look(SILENT - 0.1)
    assert not node.state.ready
    node.look(SILENT)
    assert (node.state.phase, node.state.ready) == (SyncPhase.ALONE, True)
    assert node.look(60.0) is None
    assert node.look(61.0, received=1) is ConntrackdQuestion.REQUEST_ALL
    node.look(63.0, received=1)
    assert node.state.phase is SyncPhase.SYNCED
    node.look(63.0 + SILENT)
    assert node.state.phase is SyncPhase.ALONE


def synced() -> Node:
    """Return a node that has the others' connections at 2.5 s."""
    node = Node()
    node.look(0.0)
    node.look(1.0, received=1)
    node.look(2.5, received=1)
    assert node.state.phase is SyncPhase.SYNCED
    return node


def test_a_node_that_takes_virtual_ips_requests_nothing():
    """Its own table is right, and what others send of its connections would replace them."""
    node = synced()
    assert node.look(3.0, pid=8, role=SyncRole.HOLDS) is ConntrackdQuestion.SEND_ALL
    assert (node.state.phase, node.state.ready) == (SyncPhase.SYNCED, True)
    for now in (3.5, 4.0, 5.0):
        assert node.look(now, received=1, role=SyncRole.HOLDS, pid=8) is None


@pytest.mark.parametrize("role", [SyncRole.HOLDS, SyncRole.WAITS])
def test_whoever_received_nothing_for_a_moment_requests_what_it_missed(role: SyncRole):
    """Once, at the next packet; also with virtual IPs, as another node may have had them meanwhile."""
    node = synced()
    node.look(3.0, received=1, role=role)
    assert node.look(3.0 + MISSED, role=role) is None
    assert node.state.phase is SyncPhase.SYNCED
    assert node.look(4.0 + MISSED, received=1, role=role) is ConntrackdQuestion.REQUEST_ALL
    assert node.look(4.5 + MISSED, received=1, role=role) is None


def test_a_node_with_virtual_ips_that_receives_nothing_is_alone():
    """Until the next packet."""
    node = synced()
    node.look(3.0, role=SyncRole.HOLDS)
    node.look(2.5 + SILENT, role=SyncRole.HOLDS)
    assert node.state.phase is SyncPhase.ALONE
    node.look(3.5 + SILENT, received=1, role=SyncRole.HOLDS)
    assert node.state.phase is SyncPhase.SYNCED
    node.look(4.5 + SILENT, role=SyncRole.HOLDS)
    assert node.state.phase is SyncPhase.SYNCED


def test_a_node_that_gave_its_virtual_ips_away_requests_nothing_yet():
    """It answers, as the other one may have missed something; its next conntrackd requests all."""
    node = synced()
    node.look(3.0, received=1, role=SyncRole.HOLDS)
    node.look(3.0 + MISSED, role=SyncRole.HOLDS)
    assert node.look(3.5 + MISSED, received=1, role=SyncRole.ANSWERS) is None
    assert node.look(3700.0, received=1, role=SyncRole.ANSWERS) is None
    assert node.look(3701.0, pid=8) is None
    assert node.state.phase is SyncPhase.LISTENING
    assert node.look(3702.0, received=1, pid=8) is ConntrackdQuestion.REQUEST_ALL


def test_it_sends_all_again_and_again():
    """Entries of other nodes see no packets: well before they expire, and every half an hour."""
    node = Node()
    node.look(0.0, role=SyncRole.HOLDS)
    assert node.look(SENT_AGAIN - 1, role=SyncRole.HOLDS) is None
    assert node.look(SENT_AGAIN, role=SyncRole.HOLDS) is ConntrackdQuestion.SEND_ALL
    quick = SyncState()
    for now, sent in ((0.0, True), (199.0, False), (200.0, True)):
        asked = quick.look(7, NONE, now, role=SyncRole.HOLDS, expires=600.0)
        assert (asked is ConntrackdQuestion.SEND_ALL) is sent


def test_a_node_that_takes_addresses_while_it_receives_has_what_it_has():
    """Its conntrackd is another one then, as it sends connections from now on."""
    node = Node()
    node.look(0.0)
    node.look(1.0, received=1)
    assert node.look(1.5, pid=8, role=SyncRole.HOLDS) is ConntrackdQuestion.SEND_ALL
    assert (node.state.phase, node.state.ready) == (SyncPhase.SYNCED, True)
    assert node.look(2.0, pid=9) is None
    assert (node.state.phase, node.state.ready) == (SyncPhase.LISTENING, True)


def test_taking_addresses_ends_the_wait():
    """Even if conntrackd stays the same for a moment."""
    node = Node()
    node.look(0.0)
    node.look(1.0, received=1)
    node.look(1.5, role=SyncRole.HOLDS)
    assert node.state.phase is SyncPhase.SYNCED


def test_a_conntrackd_that_was_there_has_asked_long_ago():
    """The program was restarted, and goes on with it; one that was lost is another one."""
    node = Node()
    node.state.adopt(7, NONE, 5.0)
    assert (node.state.phase, node.state.ready) == (SyncPhase.SYNCED, True)
    assert node.look(5.5, received=1) is None
    node.state.lost(6.0)
    assert (node.state.phase, node.state.ready) == (SyncPhase.UNSYNCED, True)
    assert node.look(7.0, received=1) is None
    assert node.state.phase is SyncPhase.LISTENING
