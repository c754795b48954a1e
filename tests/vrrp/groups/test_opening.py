"""Virtual routers on their way: one for each tick, groups as a whole, and a stop that leaves nothing open."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.values import snapshots

from appliance.net.logging import log as logs
from appliance.net.loop.closer import Closer
from appliance.net.loop.loop import Loop
from appliance.net.netlink.address_record import AddressRecord
from appliance.net.netlink.links import Links
from appliance.net.netlink.neighbours import Neighbours
from appliance.net.netlink.netlink import Requests
from appliance.net.netlink.routing import Routing
from appliance.net.netlink.virtual_addresses import Addresses
from appliance.vrrp.addresses.neighbour_queries import NeighbourQueries
from appliance.vrrp.addresses.peer_returns import PeerReturns
from appliance.vrrp.groups.opening import Opening, OpeningOutcome, OpeningPhase
from appliance.vrrp.instance.shared_by_instances import RouterEnvironment
from appliance.vrrp.instance.vrrp_instance import VrrpInstance

pytestmark = pytest.mark.sockets


class Watched(VrrpInstance):
    """A virtual router without capabilities, which opens nothing; it notes that it was closed."""

    closed = 0

    def close(self) -> None:
        """Note it."""
        super().close()
        self.closed += 1


class Field:
    """An opening; `seen` are the openings and beginnings in their order, `ends` what was told of them."""

    def __init__(self, environment: RouterEnvironment) -> None:
        self._environment = environment
        self.seen: list[str] = []
        self.ends: list[OpeningOutcome] = []
        self.broken: set[str] = set()
        self.bugs: list[str] = []
        self.opening = Opening(open_instance=self._open, begin=self._begin)

    def add(self, *names: str) -> list[VrrpInstance]:
        """Add new ones that belong together."""
        made: list[VrrpInstance] = [
            Watched(snapshots.virtual_router(name), self._environment) for name in names
        ]
        for each in made:
            self.opening.add(each)
        self.opening.begin_as_group(made)
        return made

    def start(self) -> None:
        """Start."""
        self.opening.start(0.0, then=self.ends.append)

    def _open(self, instance: VrrpInstance, _: float) -> None:
        self.seen.append(instance.name)
        if instance.name in self.broken:
            raise ZeroDivisionError(instance.name)

    def _begin(self, instances: list[VrrpInstance], _: float) -> None:
        self.seen.append("+".join(each.name for each in instances))
        self.bugs += [str(each) for each in self.opening.take_bugs(instances)]


@pytest.fixture
def field(tmp_path: Path) -> Iterator[Field]:
    """Return an opening with nothing on its way."""
    loop = Loop()
    record = AddressRecord(tmp_path / "owned")
    with Links() as links, Requests() as requests, Addresses(record) as addresses:
        yield Field(
            RouterEnvironment(
                loop=loop,
                links=links,
                addresses=addresses,
                routing=Routing(requests),
                requests=requests,
                neighbours=Neighbours(requests),
                closer=Closer(),
                asking=(asking := NeighbourQueries(loop, Closer())),
                returns=PeerReturns(asking),
                log=logs.configure("vrrp", level="info", form="json"),
                missing=("CAP_NET_RAW",),
            )
        )
    loop.close()


def test_one_is_opened_for_each_tick(field: Field) -> None:
    """One begins as soon as it is open, and the end is told with the last one."""
    field.add("a")
    field.add("b")
    field.start()
    assert (field.opening.phase, field.opening.deadline, field.seen) == (OpeningPhase.OPENING, 0.0, [])
    field.opening.tick(1.0)
    assert (field.opening.deadline, field.seen, field.ends) == (1.0, ["a", "a"], [])
    field.opening.tick(2.0)
    assert (field.opening.phase, field.opening.deadline) == (OpeningPhase.IDLE, None)
    assert (field.seen, field.ends) == (["a", "a", "b", "b"], [OpeningOutcome.DONE])


def test_nothing_to_open_is_done_at_once(field: Field) -> None:
    """Without any the end is told at the start, and a tick does nothing."""
    field.start()
    field.opening.tick(1.0)
    assert (field.opening.phase, field.ends) == (OpeningPhase.IDLE, [OpeningOutcome.DONE])


def test_a_group_is_looked_at_again_before_it_begins(field: Field) -> None:
    """What has happened to a member's interface while the others were opened is not lost."""
    field.add("a", "b")
    field.start()
    field.opening.tick(1.0)
    assert field.seen == ["a"]
    field.opening.tick(2.0)
    assert field.seen == ["a", "b", "a", "a+b"]


def test_a_stop_closes_what_has_not_begun(field: Field) -> None:
    """Members that wait for others are closed, nothing begins, and who waits for the end hears of it."""
    members = field.add("a", "b")
    field.start()
    field.opening.tick(1.0)
    field.opening.stop()
    field.opening.tick(2.0)
    assert [each.closed for each in members if isinstance(each, Watched)] == [1, 1]
    assert (field.opening.phase, field.opening.deadline) == (OpeningPhase.STOPPED, None)
    assert (field.seen, field.ends) == (["a"], [OpeningOutcome.GIVEN_UP])


def test_a_bug_with_a_member_is_its_group_s(field: Field) -> None:
    """It is told when the group begins, though that is some ticks later, and once."""
    field.broken = {"a"}
    members = field.add("a", "b")
    field.start()
    field.opening.tick(1.0)
    assert field.bugs == []
    field.opening.tick(2.0)
    assert field.bugs == ["a"]
    assert field.opening.take_bugs(members) == ()


def test_what_is_on_its_way_can_be_finished(field: Field) -> None:
    """All are opened, with room in between for what is due meanwhile."""
    field.add("a")
    field.add("b", "c")
    field.start()
    rests: list[int] = []
    field.opening.finish(1.0, between=lambda: rests.append(len(field.opening.closed)))
    assert (rests, field.ends) == ([2, 1, 0], [OpeningOutcome.DONE])
    assert field.seen[-1] == "b+c"


def test_one_that_joins_others_is_opened_at_once(field: Field) -> None:
    """It is not opened again later; one that is open already is left alone."""
    (joining,) = field.add("a")
    field.opening.open_now([joining], 1.0)
    field.opening.open_now([joining], 1.0)
    assert (field.seen, field.opening.closed) == (["a"], frozenset())


def test_what_broke_off_is_forgotten(field: Field) -> None:
    """A beginning that was planned before an error came does not happen beside the one of the next try."""
    (first,) = field.add("a")
    field.opening.finish(1.0, between=lambda: None)
    field.opening.begin_as_group([first])
    field.start()
    field.opening.tick(2.0)
    assert field.seen == ["a", "a"]
