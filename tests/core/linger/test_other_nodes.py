"""What the other nodes run, and when a difference counts."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from appliance.core.linger.other_nodes import (
    FORGOTTEN,
    MOST,
    SETTLED,
    SILENT,
    Difference,
    DifferenceChange,
    JudgedHere,
    OtherNodes,
    ThisNode,
)
from appliance.model.operator_events import EventKind
from appliance.wire.lines.linger_status import JudgedServer, OtherNode
from appliance.wire.linger_node import UNKNOWN, Condition, NodeFacts

pytestmark = pytest.mark.pure

OURS, THEIRS = bytes([1]) * 16, bytes([2]) * 16
MARKS = frozenset({b"mark"})
KEY = b"m1key."
DELAY = 20.0
SERVERS = {KEY: JudgedHere(name="masters/m1", up=True, delay=DELAY)}
HERE = ThisNode(name="lb-0", configuration=OURS, marks=MARKS, servers=SERVERS)
FACTS = NodeFacts(name="lb-1", release="1.0", configuration=OURS, marks=MARKS, servers={KEY: True})
ADDRESS = "10.0.0.3"


class Meeting:
    """This node, which hears another one every two seconds of a clock of its own."""

    def __init__(self, here: ThisNode = HERE) -> None:
        self.others, self.here, self.now = OtherNodes(), here, 1000.0
        self.others.look(here, now=self.now)

    def receive(self, facts: NodeFacts = FACTS, *, address: str = ADDRESS) -> tuple[DifferenceChange, ...]:
        """Hear one, and look."""
        self.others.receive(address, facts, now=self.now)
        return self.others.look(self.here, now=self.now)

    def listen(self, facts: NodeFacts, *, seconds: float) -> tuple[DifferenceChange, ...]:
        """Hear the same for some time, and return all that has changed."""
        found: list[DifferenceChange] = []
        for _ in range(round(seconds / 2)):
            self.now += 2.0
            found += self.receive(facts)
        return tuple(found)

    def node(self) -> OtherNode:
        """Return the only other node, at Unix seconds that are those of the clock and a million."""
        [found] = self.others.nodes(now=self.now, wall=self.now + 1e6)
        return found


def other(**changes: object) -> NodeFacts:
    """Return what the other node tells, changed."""
    return replace(FACTS, **changes)


DIFFERS = other(configuration=THEIRS)
JUDGES = other(servers={KEY: False})


def test_what_it_tells_is_shown():
    """Its name, release and page, which is at the address from which it tells."""
    meeting = Meeting()
    assert meeting.receive(other(page="https://:9444", condition=Condition.ILL)) == ()
    assert meeting.node() == OtherNode(
        name="lb-1",
        address=ADDRESS,
        addresses=(ADDRESS,),
        release="1.0",
        configuration=OURS.hex(),
        condition="ill",
        page=f"https://{ADDRESS}:9444",
        heard_at=1001000.0,
    )


@pytest.mark.parametrize(
    ("page", "address", "shown"),
    [
        ("", ADDRESS, ""),
        ("http://10.9.9.9:80", ADDRESS, "http://10.9.9.9:80"),
        ("http://:80", "fd00::3", "http://[fd00::3]:80"),
    ],
)
def test_where_its_page_is(page: str, address: str, shown: str):
    """At an address of its own, where it has one."""
    meeting = Meeting()
    meeting.receive(other(page=page), address=address)
    assert meeting.node().page == shown


def test_another_configuration_counts_after_a_while():
    """A push takes some seconds to reach all; afterwards it is reported once, with since when."""
    meeting = Meeting()
    assert meeting.listen(DIFFERS, seconds=SETTLED) == ()
    assert meeting.node().differs_since is None
    [change] = meeting.listen(DIFFERS, seconds=10)
    assert (change.node, change.about) == ("lb-1", Difference.CONFIGURATION)
    assert change.event is EventKind.CONFIGURATION_DIFFERS
    assert change.detail == f"{THEIRS.hex()} instead of {OURS.hex()}"
    assert meeting.node().differs_since == 1001002.0


def test_the_same_configuration_again():
    """It is reported that they agree, and a later difference begins anew."""
    meeting = Meeting()
    meeting.listen(DIFFERS, seconds=60)
    [change] = meeting.receive()
    assert (change.event, change.detail) == (EventKind.CONFIGURATION_AGREES, "")
    assert meeting.node().differs_since is None
    assert meeting.listen(DIFFERS, seconds=SETTLED) == ()


@pytest.mark.parametrize(("ours", "theirs"), [(UNKNOWN, THEIRS), (OURS, UNKNOWN)])
def test_an_unknown_configuration_is_no_difference(ours: bytes, theirs: bytes):
    """A node that has not read its file yet says nothing of it."""
    meeting = Meeting(replace(HERE, configuration=ours))
    assert meeting.listen(other(configuration=theirs), seconds=120) == ()
    assert meeting.node().configuration == ("" if theirs == UNKNOWN else theirs.hex())


def test_a_server_that_is_judged_differently():
    """It counts after the time in which both find out, and ends when they agree."""
    meeting = Meeting()
    assert meeting.listen(JUDGES, seconds=DELAY) == ()
    [change] = meeting.listen(JUDGES, seconds=4)
    assert (change.event, change.detail) == (EventKind.VERDICTS_DIFFER, "masters/m1 is up here")
    found = meeting.node().judged
    assert found == (JudgedServer(server="masters/m1", here="up", since=1001002.0),)
    assert found[0].there == "down"
    meeting.here = replace(HERE, servers={KEY: replace(SERVERS[KEY], up=False)})
    [change] = meeting.receive(JUDGES)
    assert change.event is EventKind.VERDICTS_AGREE
    assert meeting.node().judged == ()


def test_ordinary_lag_is_no_difference():
    """Both find a server down, one some seconds after the other, as often as it happens."""
    meeting = Meeting()
    for up in (False, True) * 5:
        assert meeting.listen(other(servers={KEY: up}), seconds=DELAY - 4) == ()
        meeting.here = replace(HERE, servers={KEY: replace(SERVERS[KEY], up=up)})


def test_a_server_that_one_of_them_does_not_have():
    """It is not compared: what was found in the cluster may be known to one of them only."""
    meeting = Meeting()
    assert meeting.listen(other(servers={b"other.": False}), seconds=120) == ()
    meeting.listen(JUDGES, seconds=60)
    meeting.here = replace(HERE, servers={})
    [change] = meeting.receive(JUDGES)
    assert change.event is EventKind.VERDICTS_AGREE


def test_of_many_servers_some_are_named():
    """An event stays short; the status has all of them."""
    ours = {bytes([each]) * 6: JudgedHere(name=f"p/s{each}", up=True, delay=0.0) for each in range(5)}
    meeting = Meeting(replace(HERE, servers=ours))
    [change] = meeting.listen(other(servers=dict.fromkeys(ours, False)), seconds=2)
    assert change.detail == "p/s0 is up here, p/s1 is up here, p/s2 is up here and 2 more"
    assert len(meeting.node().judged) == len(ours)


def test_a_silent_node():
    """It is shown as that, and nothing is said of differences: neither that they last nor that they ended."""
    meeting = Meeting()
    meeting.listen(DIFFERS, seconds=60)
    meeting.now += SILENT
    assert meeting.others.look(HERE, now=meeting.now) == ()
    assert (meeting.node().silent, meeting.node().differs_since) == (True, None)
    meeting.now += FORGOTTEN
    meeting.others.look(HERE, now=meeting.now)
    assert meeting.others.nodes(now=meeting.now, wall=0.0) == ()


def test_a_node_that_comes_back_with_a_difference():
    """It is reported again after a while, as a restart may bring the right one."""
    meeting = Meeting()
    meeting.listen(DIFFERS, seconds=60)
    meeting.now += SILENT
    meeting.others.look(HERE, now=meeting.now)
    assert meeting.listen(DIFFERS, seconds=SETTLED) == ()
    assert len(meeting.listen(DIFFERS, seconds=10)) == 1


def test_nodes_of_other_clusters():
    """Those with none of this node's addresses are not ours, nor are those that no longer have any."""
    meeting = Meeting()
    meeting.receive(other(marks=frozenset({b"else"}), configuration=THEIRS))
    assert meeting.others.nodes(now=meeting.now, wall=0.0) == ()
    meeting.receive()
    meeting.here = replace(HERE, marks=frozenset({b"else"}))
    meeting.others.look(meeting.here, now=meeting.now)
    assert meeting.others.nodes(now=meeting.now, wall=0.0) == ()


@pytest.mark.parametrize("name", ["", "lb-0"])
def test_a_node_without_a_name_of_its_own(name: str):
    """It is named by its address."""
    meeting = Meeting()
    meeting.receive(other(name=name))
    assert meeting.node().name == ADDRESS
    meeting.receive()
    assert meeting.node().name == "lb-1"


def test_a_node_with_several_addresses():
    """It is one node, at the address by which it was heard first, as long as it is heard there."""
    meeting = Meeting()
    for _ in range(10):
        meeting.now += 2.0
        meeting.receive()
        meeting.receive(address="fd00::3")
        assert meeting.node().address == ADDRESS
        assert meeting.node().addresses == (ADDRESS, "fd00::3")
    for _ in range(6):
        meeting.now += 2.0
        meeting.receive(address="fd00::3")
    assert meeting.node().addresses == ("fd00::3",)
    for each in range(MOST + 5):
        meeting.receive(address=f"fd00::1:{each}")
    assert len(meeting.node().addresses) == MOST


def test_more_nodes_than_are_remembered():
    """The one that was heard least recently is forgotten."""
    meeting = Meeting()
    for each in range(MOST + 1):
        meeting.receive(other(name=f"n-{each:02}"), address=f"10.0.1.{each}")
    names = [each.name for each in meeting.others.nodes(now=meeting.now, wall=0.0)]
    assert names == [f"n-{each:02}" for each in range(1, MOST + 1)]


def test_servers_are_a_mapping():
    """A node without servers has nothing that differs."""
    nothing: Mapping[bytes, JudgedHere] = {}
    assert Meeting(replace(HERE, servers=nothing)).listen(JUDGES, seconds=60) == ()
