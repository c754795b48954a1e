"""What a start resumes of the run before it, from its answer or from its board."""

import time
from collections.abc import Mapping
from dataclasses import replace

import pytest
from support.values.snapshots import virtual_router
from support.vrrp.simulated_vrrp import Machine, SimulatedLog
from support.vrrp.tracks import track

from appliance.core.vrrp.election import Resumption
from appliance.model.drop_reasons import DropReason
from appliance.net.netlink.virtual_addresses import HeldAddress
from appliance.vrrp.instance.vrrp_instance import VrrpInstance
from appliance.vrrp.status import board_record
from appliance.vrrp.takeover.predecessor import PredecessorError, PredecessorLeavingError
from appliance.vrrp.takeover.resumed_state import EarlierRun, ResumedState
from appliance.wire.boards.vrrp_board import RouterRecord, VrrpBoard
from appliance.wire.lines.vrrp_takeover import KnownRouter, KnownTrack

pytestmark = pytest.mark.pure

ADDRESS = HeldAddress(index=2, address="192.0.2.200/24")


class Left:
    """The addresses that an earlier run has left."""

    def __init__(self, *addresses: HeldAddress) -> None:
        self._addresses = frozenset(addresses)

    def leftovers(self) -> frozenset[HeldAddress]:
        """Return them."""
        return self._addresses


class Predecessor:
    """One that answers with `answer`, or raises it."""

    pid = 77

    def __init__(self, answer: tuple[KnownRouter, ...] | Exception) -> None:
        self._answer = answer
        self.killed: list[str] = []

    def ask(self) -> tuple[KnownRouter, ...]:
        """Answer."""
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    def kill(self, why: str) -> None:
        """Note it."""
        self.killed.append(why)


def known(**changes: object) -> KnownRouter:
    """Return what a predecessor says of an active `api` whose track is up."""
    values = {
        "name": "api",
        "router_id": 51,
        "active": True,
        "yielded": False,
        "tracks": (KnownTrack(name="web", up=True, value=0, detail=""),),
    }
    return KnownRouter(**{**values, **changes})


def board(*, state: str = "active", age: float = 0.5) -> VrrpBoard:
    """Return the board of a run that advertised `age` seconds ago."""
    now = time.monotonic()
    record = RouterRecord(
        name="api",
        state=state,
        priority=100,
        since=1.0,
        transitions=2,
        adverts_sent=9,
        adverts_received=0,
        priority_zero_sent=0,
        priority_zero_received=0,
        gratuitous_sent=5,
        last_advert=now - age,
        peer="",
        drops={},
    )
    return VrrpBoard(
        snapshot=1,
        pid=77,
        written_at=1.0,
        monotonic=now,
        late_wakeups=0,
        latest_wakeup=0.0,
        realtime=True,
        routers=(record,),
    )


def resumed(
    before: VrrpBoard | Predecessor | None, *left: HeldAddress, elsewhere: str | None = None
) -> tuple[Mapping[str, Resumption], VrrpInstance, SimulatedLog]:
    """Return who goes on as active, and how, the instance, and the log."""
    machine, log = Machine(), SimulatedLog()
    machine.set_link("eth1", index=3)
    more = (("198.51.100.7/24", elsewhere),) if elsewhere else ()
    addresses = (*virtual_router().addresses, *(address for address, _ in more))
    router = virtual_router(track=(track("web"),), addresses=addresses, elsewhere=more)
    instance = machine.instance(router, 0.0)
    found = EarlierRun(
        board=before if isinstance(before, VrrpBoard) else None,
        predecessor=before if isinstance(before, Predecessor) else None,
    )
    names = ResumedState(Left(*left), found, log).resume([instance])
    return names, instance, log


def test_a_first_start_resumes_nothing():
    """Addresses that are there by chance make nobody active."""
    assert resumed(None, ADDRESS)[0] == {}


def test_after_a_crash_the_board_counts_while_no_peer_has_noticed():
    """Who was active, with its addresses, and advertised less than two intervals ago goes on."""
    assert resumed(board(), ADDRESS)[0] == {"api": Resumption.AFTER_CRASH}
    assert resumed(board(age=2.5), ADDRESS)[0] == {}
    assert resumed(board(state="backup"), ADDRESS)[0] == {}
    assert resumed(board())[0] == {}


def test_addresses_on_other_interfaces_have_to_be_there_too():
    """Whoever has only some of its addresses does not go on as active."""
    other = HeldAddress(index=3, address="198.51.100.7/24")
    assert resumed(board(), ADDRESS, other, elsewhere="eth1")[0] == {"api": Resumption.AFTER_CRASH}
    assert resumed(board(), ADDRESS, elsewhere="eth1")[0] == {}
    assert resumed(board(), ADDRESS, replace(other, index=2), elsewhere="eth1")[0] == {}
    assert resumed(board(), ADDRESS, other, elsewhere="eth9")[0] == {}


def test_a_predecessor_says_what_it_knows():
    """Whether it is active, what its tracks are, and that an operator has moved it away."""
    names, instance, _ = resumed(Predecessor((known(yielded=True),)), ADDRESS)
    assert (names, instance.election.yielded) == ({"api": Resumption.HANDED_ON}, True)
    assert instance.tracked.results["web"].up is True
    assert resumed(Predecessor((known(active=False),)), ADDRESS)[0] == {}


def test_another_router_of_that_name_is_not_resumed():
    """Its id is another one: to the peers it is another virtual router."""
    names, instance, _ = resumed(Predecessor((known(router_id=9),)), ADDRESS)
    assert (names, instance.tracked.results) == ({}, {})


def test_a_predecessor_that_cannot_answer_is_killed():
    """It hangs, and does not advertise for long; one that stops by itself is left to that."""
    broken, leaving = Predecessor(PredecessorError("no answer")), Predecessor(PredecessorLeavingError())
    assert resumed(broken, ADDRESS)[0] == {}
    assert broken.killed == ["no answer"]
    _, _, log = resumed(leaving, ADDRESS)
    assert (leaving.killed, log.fields("predecessor-leaves")) == ([], [{"pid": 77}])


def test_counters_go_on():
    """What the run before has counted is where this one begins, whether it was active or not."""
    before = board(state="backup")
    counted = replace(before.routers[0], became_active=4, drops={DropReason.CHECKSUM: 3, DropReason.TYPE: 0})
    _, instance, _ = resumed(replace(before, routers=(counted,)))
    counters = instance.counters
    assert (counters.adverts_sent, counters.transition_count, counters.became_active) == (9, 2, 4)
    assert counters.drops == {DropReason.CHECKSUM: 3}
    assert board_record(instance).gratuitous_sent == 5
