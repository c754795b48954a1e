"""What a worker makes of the health board; the worker is in this process, and its timer stands still."""

import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import structlog
from support.network.ports import free_port
from support.values.snapshots import bind, frontend, group, pool, server, snapshot
from support.worker.lone_worker import up

from appliance.core.balancing.pool_state import Health, LostMembers, PoolState
from appliance.model.paths import Paths
from appliance.model.server_states import HealthVerdict, ServerState
from appliance.net.boards.board_writer import BoardWriter
from appliance.wire.boards.health_board import HealthBoard, encode
from appliance.wire.lines.worker_arguments import InheritedListener, WorkerArguments
from appliance.worker import health_follower
from appliance.worker.relay.all_sessions import Traffic
from appliance.worker.relay.backend import Backend
from appliance.worker.relay.session.session import Session
from appliance.worker.relay.session.session_phases import QUEUED
from appliance.worker.worker import Worker

pytestmark = pytest.mark.programs

POOLS = ("first", "second")


class Setup:
    """A worker with two pools of one server each, and the board that `health` writes for it."""

    def __init__(self, directory: Path) -> None:
        paths = Paths(runtime=directory, state=directory)
        ports = {name: free_port() for name in POOLS}
        self._pools = [pool(name, servers=[server("s0", port=1)]) for name in POOLS]
        fronts = [frontend(name, binds=[bind(port)], pool=name) for name, port in ports.items()]
        self._listeners = [socket.create_server(("127.0.0.1", port)) for port in ports.values()]
        listeners = tuple(
            InheritedListener(frontend=name, host="127.0.0.1", port=ports[name], fd=os.dup(each.fileno()))
            for name, each in zip(POOLS, self._listeners, strict=True)
        )
        arguments = WorkerArguments(
            program="proxy-api",
            group="api",
            generation=1,
            index=0,
            workers=1,
            snapshot=1,
            listeners=listeners,
            ready_fd=-1,
        )
        self.board = BoardWriter(paths.health_board)
        self.path = paths.health_board
        self.given = given = snapshot(groups=[group("api", frontends=fronts)], pools=self._pools)
        self.worker = Worker(arguments, given, paths=paths, logger=structlog.get_logger())

    def publish(self, *verdicts: HealthVerdict) -> None:
        """Publish one verdict on both servers, or one on each."""
        given = zip(self._pools, verdicts * 2, strict=False)
        servers = tuple(up(each, each.servers[0], verdict=verdict) for each, verdict in given)
        payload = encode(HealthBoard(snapshot=1, pid=1, written_at=1.0, servers=servers))
        self.board.publish(payload, changed=True)

    def look(self) -> list[ServerState]:
        """Let the worker look as at a tick; return what it takes the servers for."""
        self.worker.health.look()
        return [self.worker.settings.backends[name].pool.members[0].state for name in POOLS]

    def close(self) -> None:
        """End the worker."""
        self.worker.close()
        for each in self._listeners:
            each.close()


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[Setup]:
    """Give a worker whose servers are up."""
    made = Setup(tmp_path)
    made.publish(HealthVerdict.UP)
    assert made.look() == [ServerState.UP, ServerState.UP]
    yield made
    made.close()


@pytest.mark.parametrize("stop", range(5))
def test_a_verdict_is_not_missed_by_a_look_in_the_middle_of_its_publish(setup: Setup, stop: int):
    """The worker looks before each of the stores of a publish, and knows the verdict at the next look."""
    stores = []

    class Stores:
        def __init__(self, target: object) -> None:
            self._target = target

        def __setitem__(self, place: int | slice, value: bytes | int) -> None:
            if len(stores) == stop:
                setup.look()
            stores.append(place)
            self._target.__setitem__(place, value)  # type: ignore[attr-defined]  # a mapping or its words

    setup.board._map, setup.board._words = Stores(setup.board._map), Stores(setup.board._words)
    setup.publish(HealthVerdict.DOWN)
    assert setup.look() == [ServerState.DOWN, ServerState.DOWN]


def test_a_reload_costs_what_it_changes(setup: Setup, monkeypatch: pytest.MonkeyPatch):
    """A pool that stays is not touched, and the board, which is as it was, is not read again."""
    touched, read = [], []

    def follow(traffic: Traffic, backend: Backend, lost: LostMembers) -> None:
        touched.append(backend.pool.config.name)
        was(traffic, backend, lost)

    was = health_follower.follow
    monkeypatch.setattr(health_follower, "follow", follow)
    monkeypatch.setattr(setup.worker.health._board, "_decode", read.append)
    first, second = setup.given.pools
    setup.worker.apply(replace(setup.given, pools=(replace(first, retries=9), second)))
    assert (touched, read) == (["first"], [])
    assert setup.look() == [ServerState.UP, ServerState.UP]
    assert setup.worker.settings.backends["first"].retries == 9


def test_news_of_one_pool_cost_what_that_pool_costs(setup: Setup):
    """Of 500 pools in which one server goes down, 499 are not touched: here one that could be told more."""
    for name in POOLS:
        backend = setup.worker.settings.backends[name]
        backend.pool = PoolState(backend.pool.config, workers=1, index=0, random=Random(1))  # noqa: S311  # unused
    setup.publish(HealthVerdict.UP, HealthVerdict.DOWN)
    assert setup.look() == [ServerState.CHECKING, ServerState.DOWN]


def test_a_pool_that_is_new_is_given_the_health_of_its_servers(setup: Setup):
    """Though nothing has changed on the board since the worker looked last."""
    del setup.worker.settings.backends["second"]
    setup.worker.apply(setup.given)
    assert setup.worker.settings.backends["second"].pool.members[0].state is ServerState.UP


@pytest.mark.parametrize("leaves", [False, True])
def test_who_is_to_leave_waits_on(setup: Setup, leaves: bool):  # noqa: FBT001  # a parameter of the test
    """News of servers wake the queue, but for sessions that move: those before them left no real room."""
    worker, (ours, theirs) = setup.worker, socket.socketpair()
    frontend, backend = worker.settings.frontends["first"], worker.settings.backends["first"]
    session = Session(worker.traffic, frontend, backend, ours.detach(), b"")
    frontend.current += 1
    session.phase = QUEUED
    backend.pool.wait(session, b"")
    if leaves:
        worker.departing.aim(2, [0])
    setup.publish(HealthVerdict.UP)
    setup.look()
    assert (session.phase == QUEUED) is leaves
    worker.departing.close()
    theirs.close()


class Broken(PoolState):
    """A pool with a bug: no record of the board is obeyed."""

    def observe(self, health: Health) -> LostMembers:
        """Raise it."""
        if health:
            raise ZeroDivisionError
        return super().observe(health)


def test_a_bug_in_one_pool_hides_no_verdict_from_the_others(setup: Setup):
    """It is logged, and the pools after it obey."""
    backend = setup.worker.settings.backends[POOLS[0]]
    backend.pool = Broken(backend.pool.config, workers=1, index=0, random=Random(1))  # noqa: S311  # unused
    setup.publish(HealthVerdict.DOWN)
    with structlog.testing.capture_logs() as logs:
        assert setup.look() == [ServerState.CHECKING, ServerState.DOWN]
        setup.look()
    assert [each["event"] for each in logs] == ["internal-error"]


def test_a_board_that_was_removed_and_made_anew_is_found(setup: Setup):
    """With the runtime directory deleted and health's board written again, the worker obeys that."""
    setup.path.unlink()
    setup.board.close()
    setup.board = BoardWriter(setup.path)
    setup.publish(HealthVerdict.DOWN)
    for _ in range(20):
        setup.worker._tick()
    assert setup.look() == [ServerState.DOWN, ServerState.DOWN]
