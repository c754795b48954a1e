"""Reloads under load through the whole appliance: nothing is refused, reset or mixed up.

`E2E_FULL=1` runs the sizes of the product's promise: 1,000 sessions, 300 connections a second, 100 reloads
and two workers; without it fewer, so that the suite stays quick on two processors.
"""

import os
import time
from dataclasses import dataclass

import pytest
from support.load.load import Load, Session
from support.peers.cluster import Cluster, cluster
from support.processes.waiting import wait_until

pytestmark = [pytest.mark.programs, pytest.mark.data_path]

_FULL = os.environ.get("E2E_FULL") == "1"
_SESSIONS = 1000 if _FULL else 300
_RATE = 300.0 if _FULL else 100.0
_RELOADS = 100 if _FULL else 25
_WORKERS = 2 if _FULL else 1
_DRAIN = 15.0 if _FULL else 6.0
_LATE = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """One reload: when its line was sent, and when the snapshot it made had been accepted (Unix seconds)."""

    sent: float
    accepted: float


@pytest.mark.slow("generations of real workers under load")
def test_many_reloads_on_a_connection_whose_answers_are_never_read_lose_nothing():
    """Each line makes a generation; sessions live to their drain deadline and not much longer."""
    with (
        cluster(workers=_WORKERS, drain=_DRAIN) as made,
        Load(port=made.port, sessions=_SESSIONS, rate=_RATE, renew=True) as load,
    ):
        load.wait_for_sessions()
        swaps = _reload_many(made)
        assert made.appliance.generation() >= _RELOADS + 1
        _wait_for_drained(made)
        wait_until(lambda: len(load.report().ended) >= _SESSIONS, what="clients have noticed")
        report = load.report()
        assert report.failures == {}
        assert report.completed > 0
        assert sorted(report.servers) == ["master-0", "master-1", "master-2"]
        lost = [session for session in report.ended if not _as_promised(session, swaps)]
        assert lost == []
        load.wait_for_sessions()


@pytest.mark.promise("docs/reloading.md", "a broken file changes nothing")
def test_a_broken_file_changes_nothing_and_every_error_is_answered():
    """A reload of a broken file is refused with all its errors, while connections go on."""
    with cluster(workers=1) as made, Load(port=made.port, sessions=20, rate=50) as load:
        load.wait_for_sessions()
        before = made.appliance.generation(), made.appliance.accepted()
        broken = made.config(balance="roundrobn", slow_start="soon")
        answer = made.appliance.reload(broken)
        assert answer["ok"] is False
        text = str(answer["errors"])
        assert "balance" in text
        assert "slow_start" in text
        assert (made.appliance.generation(), made.appliance.accepted()) == before
        assert load.report().failures == {}
        assert load.report().ended == []


@pytest.mark.slow("generations of real workers under load")
def test_an_unchanged_file_makes_no_generation():
    """A reload without a change says so and starts nothing."""
    with cluster(workers=1) as made:
        answer = made.appliance.reload()
        assert answer["ok"] is True
        assert answer["changed"] == []
        assert made.appliance.generation() == 1


@pytest.mark.promise("docs/reloading.md", "servers come and go live")
def test_a_server_is_added_and_removed_live():
    """Pool members change in the running generation, and the next connections use what there is."""
    with cluster(masters=3, workers=1) as made, Load(port=made.port, sessions=30, rate=100) as load:
        load.wait_for_sessions()
        config = made.config()
        pools = config["pools"]
        assert isinstance(pools, dict)
        removed = pools["masters"]["servers"].pop("master-2")
        assert made.appliance.reload(config)["ok"] is True
        _wait_for_no_new(load, "master-2")
        pools["masters"]["servers"]["master-2"] = removed
        assert made.appliance.reload(config)["ok"] is True
        seen = load.report().servers.get("master-2", 0)
        wait_until(lambda: load.report().servers.get("master-2", 0) > seen, what="master-2 is used again")
        assert made.appliance.generation() == 1
        assert load.report().failures == {}
        assert load.report().ended == []


@pytest.mark.slow("generations of real workers under load")
def test_a_port_in_use_is_answered_and_the_old_generation_goes_on():
    """A bind that fails is the answer to the reload, and nothing has changed."""
    with cluster(workers=1) as made, Load(port=made.port, sessions=20, rate=50) as load:
        load.wait_for_sessions()
        config = made.config()
        group = config["api"]
        assert isinstance(group, dict)
        taken = made.masters[0].port
        group["frontends"]["second"] = {"bind": [f"[::]:{taken}"], "pool": "masters"}
        answer = made.appliance.reload(config)
        assert answer["ok"] is False
        assert str(taken) in str(answer["errors"])
        assert [worker.generation for worker in made.appliance.accepting()] == [1]
        assert load.report().failures == {}
        assert load.report().ended == []


def _reload_many(made: Cluster) -> list[Swap]:
    swaps = []
    with made.appliance.reload_connection() as connection:
        for revision in range(1, _RELOADS + 1):
            made.appliance.write(made.config(revision=revision))
            before, sent = made.appliance.accepted(), time.time()
            connection.sendall(b"reload\n")
            wait_until(
                lambda before=before: made.appliance.accepted() > before,
                what=f"reload {revision} is accepted",
                timeout=60.0,
            )
            swaps.append(Swap(sent=sent, accepted=time.time()))
        # The last commit comes after its acceptance.
        wait_until(
            lambda: made.appliance.generation() >= _RELOADS + 1,
            what="the last generation accepts",
            timeout=30.0,
        )
    return swaps


def _wait_for_drained(made: Cluster) -> None:
    newest = made.appliance.generation()
    wait_until(
        lambda: {worker.generation for worker in made.appliance.workers()} == {newest},
        what="every old generation has ended",
        timeout=_DRAIN + 60.0,
        pause=0.5,
    )


def _as_promised(session: Session, swaps: list[Swap]) -> bool:
    """Return whether the session ended at its generation's drain deadline.

    The generation accepted still when the session was started, so its drain began later; and the first reload
    that was sent after the session was answered, or the last one of all, has drained it at the latest.
    """
    drained_by = next((swap for swap in swaps if swap.sent > session.answered), swaps[-1])
    began = session.ended - _DRAIN
    return session.how in ("end", "reset") and session.started - 0.1 <= began <= drained_by.accepted + _LATE


def _wait_for_no_new(load: Load, server: str) -> None:
    """Wait until the other servers have had 50 more connections and this one none."""

    def passed_over() -> bool:
        before = load.report()
        wait_until(lambda: load.report().completed >= before.completed + 50, what="50 connections more")
        return load.report().servers.get(server, 0) == before.servers.get(server, 0)

    wait_until(passed_over, what=f"{server} gets no new connection", timeout=20.0)
