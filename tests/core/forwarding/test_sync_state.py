"""When a node has the connections of the others, and when it tells of its own."""

from dataclasses import replace

import pytest

from appliance.core.forwarding.sync_state import (
    LONGEST,
    MISSED,
    QUIET,
    SILENT,
    TOLD_AGAIN,
    SyncPhase,
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
        self, now: float, *, heard: int = 0, new: int = 0, pid: int = 7, holds: bool = False
    ) -> ConntrackdQuestion | None:
        """Look at `now`, when so many more packets and connections have come."""
        before = self.counted
        self.counted = replace(before, packets=before.packets + heard, created=before.created + new)
        return self.state.look(pid, self.counted, now, holds=holds, expires=432_000.0)


def test_a_node_asks_whom_it_hears_and_is_ready_when_nothing_new_comes():
    """The question comes once another node was heard; then new connections prolong the wait."""
    node = Node()
    assert node.look(0.0) is None
    assert (node.state.phase, node.state.ready) == (SyncPhase.LISTENING, False)
    assert node.look(1.0, heard=1) is ConntrackdQuestion.REQUEST_ALL
    assert node.look(1.5, heard=9, new=500) is None
    assert node.look(2.0 + QUIET - 0.6, heard=9, new=500) is None
    assert (node.state.phase, node.state.ready) == (SyncPhase.RECEIVING, False)
    assert node.look(2.4 + QUIET) is None
    assert (node.state.phase, node.state.ready, node.state.since) == (SyncPhase.SYNCED, True, 2.4 + QUIET)


def test_a_busy_node_delays_the_other_no_longer_than_the_bound():
    """There are new connections all the time."""
    node = Node()
    node.look(0.0)
    node.look(1.0, heard=1)
    for step in range(int(LONGEST * 2)):
        node.look(1.0 + step / 2, heard=1, new=9)
    assert not node.state.ready
    node.look(1.0 + LONGEST, heard=1, new=9)
    assert node.state.ready


def test_a_node_that_hears_nobody_is_alone_and_asks_who_comes():
    """It waits for a while, and takes addresses then; what it missed it asks for as soon as it can."""
    node = Node()
    node.look(0.0)
    node.look(SILENT - 0.1)
    assert not node.state.ready
    node.look(SILENT)
    assert (node.state.phase, node.state.ready) == (SyncPhase.ALONE, True)
    assert node.look(60.0) is None
    assert node.look(61.0, heard=1) is ConntrackdQuestion.REQUEST_ALL
    node.look(63.0, heard=1)
    assert node.state.phase is SyncPhase.SYNCED
    node.look(63.0 + SILENT)
    assert node.state.phase is SyncPhase.ALONE


def test_a_node_with_virtual_ips_asks_nobody():
    """Its own table is right, and what others send of its connections would replace them."""
    node = Node()
    assert node.look(0.0, holds=True) is ConntrackdQuestion.SEND_ALL
    assert (node.state.phase, node.state.ready) == (SyncPhase.SYNCED, True)
    assert node.look(SILENT, holds=True) is None
    assert node.state.phase is SyncPhase.ALONE
    assert node.look(SILENT + 1, heard=1, holds=True) is None
    assert node.state.phase is SyncPhase.SYNCED
    assert node.look(SILENT + 2, holds=True) is None
    assert node.state.phase is SyncPhase.SYNCED


def test_it_tells_all_again_and_again():
    """Entries of other nodes see no packets: well before they expire, and every half an hour."""
    node = Node()
    node.look(0.0, holds=True)
    assert node.look(TOLD_AGAIN - 1, holds=True) is None
    assert node.look(TOLD_AGAIN, holds=True) is ConntrackdQuestion.SEND_ALL
    quick = SyncState()
    for now, told in ((0.0, True), (199.0, False), (200.0, True)):
        asked = quick.look(7, NONE, now, holds=True, expires=600.0)
        assert (asked is ConntrackdQuestion.SEND_ALL) is told


def test_a_node_that_takes_addresses_while_it_receives_has_what_it_has():
    """Its conntrackd is another one then, as it tells of connections from now on."""
    node = Node()
    node.look(0.0)
    node.look(1.0, heard=1)
    assert node.look(1.5, pid=8, holds=True) is ConntrackdQuestion.SEND_ALL
    assert (node.state.phase, node.state.ready) == (SyncPhase.SYNCED, True)
    assert node.look(2.0, pid=9) is None
    assert (node.state.phase, node.state.ready) == (SyncPhase.LISTENING, True)


def test_taking_addresses_ends_the_wait():
    """Even if conntrackd stays the same for a moment."""
    node = Node()
    node.look(0.0)
    node.look(1.0, heard=1)
    node.look(1.5, holds=True)
    assert node.state.phase is SyncPhase.SYNCED


def test_a_conntrackd_that_was_there_has_asked_long_ago():
    """The program was restarted, and goes on with it; one that was lost is another one."""
    node = Node()
    node.state.adopt(7, NONE, 5.0)
    assert (node.state.phase, node.state.ready) == (SyncPhase.SYNCED, True)
    assert node.look(5.5, heard=1) is None
    node.state.lost(6.0)
    assert (node.state.phase, node.state.ready) == (SyncPhase.UNSYNCED, True)
    assert node.look(7.0, heard=1) is None
    assert node.state.phase is SyncPhase.LISTENING


def test_a_node_knows_that_others_have_missed_something():
    """It has heard nobody for a moment; a while after they were back they have it."""
    node = Node()
    node.look(0.0, holds=True)
    assert not node.state.was_alone(0.0)
    node.look(MISSED, holds=True)
    node.look(MISSED + 0.5, heard=1, holds=True)
    assert node.state.was_alone(MISSED + 0.5)
    assert not node.state.was_alone(MISSED + SILENT)
