"""Questions for addresses: who is asked when, and who is told the answers."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from appliance.net.loop.closer import Closer
from appliance.net.loop.loop import Loop
from appliance.vrrp.addresses import neighbour_queries
from appliance.vrrp.addresses.neighbour_queries import (
    AT_ONCE,
    GAP,
    PAUSE,
    SETTLED,
    AskedAddress,
    AskingInterface,
    NeighbourQueries,
)
from appliance.vrrp.addresses.peer_returns import PeerReturns
from appliance.wire.ethernet import arp

pytestmark = pytest.mark.sockets

PLACE = AskingInterface(interface="eth0", index=2, mac=b"\x02\0\0\0\0\x01", source="192.0.2.1")
THEIRS = b"\x02\0\0\0\0\x02"


class Wire:
    """A segment as one socket sees it: what was asked, and answers that wait to be read."""

    opened: list["Wire"] = []  # noqa: RUF012  # emptied by the fixture

    def __init__(self, interface: str, addresses: list[str]) -> None:
        self.interface = interface
        self.claimed = addresses
        self.asked: list[str] = []
        self.frames: list[bytes] = []
        self.answers: list[bytes] = []
        self.closed = False
        self.opened.append(self)

    @classmethod
    def claims(cls, interface: str, addresses: list[str]) -> "Wire":
        """Open one."""
        return cls(interface, addresses)

    def claim(self, addresses: list[str]) -> None:
        """Hear of these instead."""
        self.claimed = addresses

    def fileno(self) -> int:
        """Return a number that is nobody's."""
        return 1_000_000 + len(self.opened)

    def send(self, frame: bytes) -> None:
        """Note what is asked."""
        self.asked.append(arp.decode(frame).target)
        self.frames.append(frame)

    def receive(self) -> list[bytes]:
        """Return the answers, once."""
        found, self.answers = self.answers, []
        return found

    def close(self) -> None:
        """Note it."""
        self.closed = True


class Quiet(Loop):
    """A loop whose descriptors are read by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.readers: list[object] = []

    def read(self, descriptor: int, ready: object) -> None:  # type: ignore[override]  # it only notes it
        """Note who wants to read."""
        if descriptor >= 1_000_000 and ready is not None:
            self.readers.append(ready)

    def forget(self, descriptor: int) -> None:
        """Do nothing."""


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> Iterator[NeighbourQueries]:
    """Return what asks on wires."""
    Wire.opened = []
    monkeypatch.setattr(neighbour_queries, "FrameSocket", Wire)
    loop = Quiet()
    yield NeighbourQueries(loop, Closer())
    loop.close()


def _asked(address: str, place: AskingInterface = PLACE) -> AskedAddress:
    """Return what is asked there."""
    return AskedAddress(index=place.index, address=address)


def _nobody(_: bytes, __: AskedAddress, ___: float) -> None:
    """Do nothing with an answer."""


def test_asks_after_a_while_and_then_calmly(asking: NeighbourQueries):
    """First when who was active before has had the time to leave, then at each pause."""
    asking.begin("192.0.2.100", PLACE, _nobody, 10.0)
    assert asking.deadline == 10.0 + SETTLED
    asking.tick(10.0 + SETTLED - 0.1)
    assert Wire.opened == []
    asking.tick(10.0 + SETTLED)
    assert asking.deadline == 10.0 + SETTLED + PAUSE
    asking.tick(10.0 + SETTLED + PAUSE)
    (wire,) = Wire.opened
    assert wire.asked == ["192.0.2.100"] * 2


def test_many_are_asked_a_few_at_a_time(asking: NeighbourQueries):
    """However many there are, one socket asks for them in turn, at a bounded rate."""
    addresses = [f"192.0.2.{number}" for number in range(100, 100 + 3 * AT_ONCE)]
    for each in addresses:
        asking.begin(each, PLACE, _nobody, 0.0)
    now = SETTLED
    for turn in range(3):
        asking.tick(now)
        (wire,) = Wire.opened
        assert len(wire.asked) == (turn + 1) * AT_ONCE
        assert asking.deadline == pytest.approx(now + GAP) or turn == 2
        now += GAP
    assert sorted(wire.asked) == sorted(addresses)
    assert wire.claimed == addresses
    assert asking.interval == PAUSE


def test_the_end_of_one_leaves_the_others(asking: NeighbourQueries):
    """What was ended is not asked for; the socket goes with the last one, and what moved goes on."""
    for each in ("192.0.2.100", "192.0.2.101"):
        asking.begin(each, PLACE, _nobody, 0.0)
    asking.tick(SETTLED)
    asking.end(_asked("192.0.2.100"), _nobody)
    asking.end(_asked("192.0.2.100"), _nobody)
    asking.tick(SETTLED + PAUSE)
    (wire,) = Wire.opened
    assert wire.asked[2:] == ["192.0.2.101"]
    moved = replace(PLACE, mac=THEIRS)
    asking.begin("192.0.2.101", moved, _nobody, SETTLED + PAUSE)
    asking.tick(SETTLED + 2 * PAUSE)
    assert len(Wire.opened) == 2
    asking.end(_asked("192.0.2.101"), _nobody)
    assert asking.deadline is None


def test_only_its_owner_ends_a_question(asking: NeighbourQueries):
    """Who took an address over has it asked for; who had it before ends nothing."""
    told: list[AskedAddress] = []
    asking.begin("192.0.2.100", PLACE, _nobody, 0.0)
    asking.begin("192.0.2.100", PLACE, lambda _, asked, __: told.append(asked), 0.0)
    asking.end(_asked("192.0.2.100"), _nobody)
    asking.tick(SETTLED)
    (wire,) = Wire.opened[-1:]
    assert wire.asked == ["192.0.2.100"]


def test_a_peer_that_was_silent_is_back(asking: NeighbourQueries):
    """Who answers all the time is no news; who has missed a question is, for each router that has it."""
    returns, told = PeerReturns(asking), list[str]()
    for name in ("api", "ingress"):
        returns.begin(name, ["192.0.2.2"], PLACE, lambda _, name=name: told.append(name), 100.0)
    for at in (100.5, 101.5, 102.5):
        returns._answered(THEIRS, _asked("192.0.2.2"), at)  # what the socket would call
    assert told == []
    returns._answered(THEIRS, _asked("192.0.2.2"), 110.0)  # the same
    assert told == ["api", "ingress"]
    returns.end("api")
    assert asking.deadline is not None
    returns.end("ingress")
    assert asking.deadline is None


def test_one_address_on_two_interfaces_is_asked_for_on_both(asking: NeighbourQueries):
    """Link-local addresses are the same on many VLANs; the end on one leaves the other."""
    other = replace(PLACE, interface="eth0.20", index=3)
    for place in (PLACE, other):
        asking.begin("169.254.0.1", place, _nobody, 0.0)
    asking.tick(SETTLED)
    assert {wire.interface: wire.asked for wire in Wire.opened} == {
        "eth0": ["169.254.0.1"],
        "eth0.20": ["169.254.0.1"],
    }
    asking.end(_asked("169.254.0.1"), _nobody)
    asking.tick(SETTLED + PAUSE)
    assert [len(wire.asked) for wire in Wire.opened] == [1, 2]


def test_a_peer_is_told_from_one_of_the_same_address_elsewhere(asking: NeighbourQueries):
    """Who comes back on one interface is no news for virtual routers on another one."""
    returns, told, other = PeerReturns(asking), list[str](), replace(PLACE, interface="eth0.20", index=3)
    for name, place in (("api", PLACE), ("ingress", other)):
        returns.begin(name, ["169.254.0.2"], place, lambda _, name=name: told.append(name), 100.0)
    returns._answered(THEIRS, _asked("169.254.0.2", other), 110.0)  # what the socket would call
    assert told == ["ingress"]


def test_a_peer_is_asked_in_its_own_right(asking: NeighbourQueries):
    """A probe for the address of a peer that looks for duplicates would keep the peer from having it."""
    returns = PeerReturns(asking)
    asking.begin("192.0.2.100", PLACE, _nobody, 0.0)
    returns.begin("api", ["192.0.2.2"], PLACE, lambda _: None, 0.0)
    asking.tick(SETTLED)
    (wire,) = Wire.opened
    senders = {arp.decode(frame).target: arp.decode(frame).sender for frame in wire.frames}
    assert senders == {"192.0.2.100": "0.0.0.0", "192.0.2.2": PLACE.source}


def test_a_peer_is_asked_from_the_present_hardware_address(asking: NeighbourQueries):
    """Also where another virtual router has it asked for: an old address would be claimed for our source."""
    returns, moved = PeerReturns(asking), replace(PLACE, mac=b"\x02\0\0\0\0\x09")
    for name, place in (("api", PLACE), ("ingress", PLACE), ("api", moved)):
        returns.begin(name, ["192.0.2.2"], place, lambda _: None, 0.0)
    asking.tick(SETTLED)
    (wire,) = Wire.opened
    assert [arp.decode(frame).sender_mac for frame in wire.frames] == [moved.mac]
