"""Who takes from whom: preempt and nopreempt, and priorities that change, beside keepalived."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.vrrp.keepalived import Instance, Keepalived
from support.vrrp.vrrp_field import Field
from support.vrrp.vrrp_node import VrrpNode, router, track

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "keepalived", "tcpdump", root=True)]


@pytest.fixture(name="penalty")
def _penalty(tmp_path: Path) -> Path:
    """Return a file with the number 0, for tracks."""
    path = tmp_path / "penalty"
    path.write_text("0\n")
    return path


def _tracked(path: Path, weight: int) -> dict[str, object]:
    """Return what a keepalived needs to track a file."""
    return {"head": f'track_file penalty {{\nfile "{path}"\nweight {weight}\n}}'}


def _set(path: Path, number: int) -> None:
    # Beside and renamed, so that nobody reads it empty.
    scratch = path.with_suffix(".new")
    scratch.write_text(f"{number}\n")
    scratch.replace(path)


def test_ours_takes_from_a_worse_keepalived(ground: Field):
    """A better one of ours that comes later preempts, and the keepalived leaves the address."""
    with Keepalived(ground.two, Instance(priority=100)) as peer:
        peer.wait_for("MASTER")
        with VrrpNode(ground.one, router(priority=150)) as ours:
            ours.wait_for("active")
            ground.wait_for_holder(ground.one)
            _is_told_as_preemption(ours)
        assert peer.states()[:3] == ["BACKUP", "MASTER", "BACKUP"]


@pytest.mark.slow("real timers of several routers")
def test_ours_takes_from_a_worse_one_of_ours(ground: Field):
    """A better one that is started later preempts, which is no split brain on either side."""
    with VrrpNode(ground.two, router(priority=100)) as worse:
        worse.wait_for("active")
        with VrrpNode(ground.one, router(priority=150)) as better:
            better.wait_for("active")
            ground.wait_for_holder(ground.one)
            ground.wait_for_adverts(3, source=ground.one.address)
            _is_told_as_preemption(better)
            assert "split-brain" not in worse.log()


def _is_told_as_preemption(ours: VrrpNode) -> None:
    told = ours.status()["transitions"]
    assert [(each["state"], each["cause"]) for each in told] == [
        ("backup", "started"),
        ("active", "preempted"),
    ]
    assert ours.status()["counters"]["split_brains"] == 0
    assert "split-brain" not in ours.log()


def test_a_better_keepalived_takes_from_ours(ground: Field):
    """A better keepalived that comes later preempts, ours leaves the address when it hears it."""
    with VrrpNode(ground.one, router(priority=100)) as ours:
        ours.wait_for("active")
        with Keepalived(ground.two, Instance(priority=150)) as peer:
            peer.wait_for("MASTER")
            ground.wait_for_holder(ground.two)
            assert ours.transitions() == ["backup", "active", "backup"]


def test_ours_does_not_preempt_where_it_may_not(ground: Field):
    """With nopreempt a better one of ours stays silent while a keepalived serves, and takes over after it."""
    with Keepalived(ground.two, Instance(priority=100)) as peer:
        peer.wait_for("MASTER")
        with VrrpNode(ground.one, router(priority=150, preempt=False)) as ours:
            ours.wait_for("backup")
            ground.wait_for_adverts(10, source=ground.two.address)
            assert ground.senders() == {ground.two.address}
            assert ours.state() == "backup"
            peer.terminate()
            ground.wait_for_holder(ground.one)


def test_keepalived_with_nopreempt_leaves_ours_alone(ground: Field):
    """A better keepalived with nopreempt stays BACKUP beside ours, and takes over when ours stops."""
    with VrrpNode(ground.one, router(priority=100)) as ours:
        ours.wait_for("active")
        with Keepalived(ground.two, Instance(priority=150, nopreempt=True)) as peer:
            peer.wait_for("BACKUP")
            ground.wait_for_adverts(10, source=ground.one.address)
            assert ground.senders() == {ground.one.address}
            assert peer.states() == ["BACKUP"]
            ours.stop()
            ground.wait_for_holder(ground.two)


@contextmanager
def _worse(ground: Field, peer: str) -> Iterator[Callable[[], None]]:
    """Run a worse one on `two`, ours or a keepalived, until it serves; give what kills it."""
    if peer == "keepalived":
        with Keepalived(ground.two, Instance(priority=100)) as keepalived:
            keepalived.wait_for("MASTER")
            yield keepalived.kill
        return
    with VrrpNode(ground.two, router(priority=100)) as ours:
        ours.wait_for("active")
        yield ours.kill


@pytest.mark.slow("real timers of several routers")
@pytest.mark.parametrize("peer", ["ours", "keepalived"])
def test_preemption_waits_for_its_delay(ground: Field, peer: str):
    """A better one of ours with preempt_delay lets the worse one serve for so long, then takes over."""
    with _worse(ground, peer):
        before = len(ground.capture.adverts(source=ground.two.address))
        with VrrpNode(ground.one, router(priority=150, preempt_delay=2.0)) as ours:
            ours.wait_for("active")
            ground.wait_for_holder(ground.one)
            # The worse one's adverts, one each 100 ms, are the clock.
            assert len(ground.capture.adverts(source=ground.two.address)) - before >= 15
            assert ours.transitions() == ["backup", "active"]


@pytest.mark.slow("real timers of several routers")
@pytest.mark.parametrize("peer", ["ours", "keepalived"])
def test_a_death_does_not_wait_for_the_preempt_delay(ground: Field, peer: str):
    """Within its preempt_delay, however long, a better one of ours takes over from a worse one that dies."""
    with (
        _worse(ground, peer) as kill,
        VrrpNode(ground.one, router(priority=150, preempt_delay=600.0)) as ours,
    ):
        ours.wait_for("backup")
        ground.wait_for_adverts(10, source=ground.two.address)
        assert ours.state() == "backup"
        kill()
        ours.wait_for("active")


def test_ours_serves_during_a_keepalived_s_preempt_delay(ground: Field):
    """A better keepalived with preempt_delay leaves ours active for so long, and then has the address."""
    with VrrpNode(ground.one, router(priority=100)) as ours:
        ours.wait_for("active")
        with Keepalived(ground.two, Instance(priority=150, lines=("preempt_delay 2",))) as peer:
            peer.wait_for("BACKUP")
            before = len(ground.capture.adverts(source=ground.one.address))
            peer.wait_for("MASTER")
            ground.wait_for_holder(ground.two)
            assert len(ground.capture.adverts(source=ground.one.address)) - before >= 15
            assert ours.transitions() == ["backup", "active", "backup"]


@pytest.mark.slow("real timers of several routers")
def test_weight_moves_the_address_away_from_ours_and_back(ground: Field, penalty: Path):
    """A falling priority of ours lets a keepalived take over, a rising one takes the address back."""
    weighed = track("file", str(penalty), weight=1)
    with (
        Keepalived(ground.two, Instance(priority=100)),
        VrrpNode(ground.one, router(priority=150, track=(weighed,))) as ours,
    ):
        ground.wait_for_holder(ground.one)
        _set(penalty, -60)
        ground.wait_for_holder(ground.two)
        assert ours.status()["priority"] == 90
        # It said so while it was still active: the peer had not to wait for its silence.
        assert ground.capture.adverts(source=ground.one.address, priority=90)
        _set(penalty, 0)
        ground.wait_for_holder(ground.one)
        ground.wait_for_adverts(1, source=ground.one.address, priority=150)


def test_weight_moves_the_address_away_from_keepalived_and_back(ground: Field, penalty: Path):
    """A falling priority of a keepalived lets ours take over, a rising one gives the address back."""
    instance = Instance(priority=150, lines=("track_file {\npenalty\n}",))
    with (
        Keepalived(ground.two, instance, **_tracked(penalty, 1)) as peer,
        VrrpNode(ground.one, router(priority=100)) as ours,
    ):
        ground.wait_for_holder(ground.two)
        _set(penalty, -60)
        ground.wait_for_holder(ground.one)
        peer.wait_for("BACKUP")
        _set(penalty, 0)
        ground.wait_for_holder(ground.two)
        ours.wait_for("backup")


def test_degraded_with_nopreempt_hands_over_to_keepalived(ground: Field, penalty: Path):
    """Ours with nopreempt and a lost weight is relieved by a keepalived with nopreempt, which never asks."""
    weighed = track("file", str(penalty), weight=1)
    with VrrpNode(ground.one, router(priority=150, preempt=False, track=(weighed,))) as ours:
        ours.wait_for("active")
        with Keepalived(ground.two, Instance(priority=100, nopreempt=True)) as peer:
            peer.wait_for("BACKUP")
            _set(penalty, -60)
            ground.wait_for_holder(ground.two)
            ours.wait_for("backup")
            # Healthy again it does not take back: that is what nopreempt says.
            _set(penalty, 0)
            ground.wait_for_adverts(10, source=ground.two.address)
            ground.wait_for_holder(ground.two)


def test_ours_with_nopreempt_relieves_a_degraded_keepalived(ground: Field, penalty: Path):
    """A keepalived whose priority falls below ours is relieved, though ours has nopreempt."""
    instance = Instance(priority=150, lines=("track_file {\npenalty\n}",))
    with (
        Keepalived(ground.two, instance, **_tracked(penalty, 1)) as peer,
        VrrpNode(ground.one, router(priority=100, preempt=False)) as ours,
    ):
        ground.wait_for_holder(ground.two)
        ours.wait_for("backup")
        # What it advertised before has to be known, or there is no fall.
        ground.wait_for_adverts(2, source=ground.two.address, priority=150)
        _set(penalty, -60)
        ground.wait_for_holder(ground.one)
        peer.wait_for("BACKUP")


def test_equal_priority_goes_to_the_higher_address(ground: Field):
    """Ours leaves to a keepalived of the same priority and a higher address, when both are active."""
    with VrrpNode(ground.one, router()) as ours, Keepalived(ground.two, Instance()) as peer:
        ground.two.isolate()
        ours.wait_for("active")
        peer.wait_for("MASTER")
        ground.two.rejoin()
        ground.wait_for_holder(ground.two)
        ours.wait_for("backup")


@pytest.mark.slow("real timers of several routers")
def test_a_fault_hands_over_and_its_end_takes_back(ground: Field, penalty: Path):
    """A track without weight that falls means fault: priority 0 on the wire, and the keepalived serves."""
    with (
        Keepalived(ground.two, Instance(priority=100)) as peer,
        VrrpNode(ground.one, router(priority=150, track=(track("file", str(penalty)),))) as ours,
    ):
        ground.wait_for_holder(ground.one)
        _set(penalty, 1)
        ours.wait_for("fault")
        ground.wait_for_holder(ground.two)
        assert ground.capture.adverts(source=ground.one.address, priority=0)
        _set(penalty, 0)
        ground.wait_for_holder(ground.one)
        peer.wait_for("BACKUP")


@pytest.mark.slow("real timers of several routers")
def test_keepalived_in_fault_is_relieved(ground: Field, penalty: Path):
    """A keepalived that falls into fault while master is relieved by ours."""
    instance = Instance(priority=150, lines=("track_file {\npenalty\n}",))
    with (
        Keepalived(ground.two, instance, **_tracked(penalty, 0)) as peer,
        VrrpNode(ground.one, router(priority=100)),
    ):
        ground.wait_for_holder(ground.two)
        _set(penalty, 1)
        peer.wait_for("FAULT")
        ground.wait_for_holder(ground.one)
