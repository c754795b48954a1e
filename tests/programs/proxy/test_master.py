"""The proxy master with real workers, real clients and real faults."""

import json
import os
import resource
import signal
import time
import xmlrpc.client
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler
from socketserver import UnixStreamServer
from threading import Thread

import pytest
from support.load.load import Load
from support.network.ports import accepts, free_port
from support.peers.backend import Backend
from support.processes.log_lines import logged
from support.processes.processes import alive, kill, with_environment
from support.processes.waiting import wait_until as wait
from support.proxy.impatient_master import KILL_GRACE
from support.proxy.lone_proxy import LoneProxy
from support.supervisor.appliance import ask
from support.values.snapshots import bind, frontend, group, pool, server, snapshot, virtual_router

from appliance.model.snapshot.frontends import KeepAlive
from appliance.model.snapshot.snapshot import Reload, Snapshot

pytestmark = pytest.mark.programs


wait_until = partial(wait, timeout=60.0)

# Of a master with short patience: what a test that has no worker fail must not run into.
_PATIENT = {"startup": 90.0, "silence": 30.0}

_STAY = Reload(sockets=(), max_draining=10, sessions="drain")


class Site:
    """A master behind a proxy: its snapshots by number."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.port = free_port()

    @staticmethod
    def name(number: int) -> str:
        """Return the name of the frontend that a snapshot has."""
        return f"frontend-{number}" if number > 1 else "frontend"

    def snapshot(self, number: int = 1, *, workers: int = 1, **changes: object) -> Snapshot:
        """Return a snapshot; each `number` has a frontend of another name: a new generation.

        Open sessions stay in the old one, which is what is looked at here; test_moved_sessions.py moves them.
        """
        settings: dict[str, object] = {
            "name": self.name(number),
            "binds": [bind(self.port, host="::")],
        }
        settings.update(changes.pop("frontend", {}))
        return snapshot(
            number=number,
            groups=[group(workers=workers, frontends=[frontend(**settings)])],
            pools=[pool(servers=[server(port=self.backend.port)])],
            **{"drain": 5.0, "reload": _STAY, **changes},
        )


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    """Return a scripted server."""
    with Backend("master-0") as backend:
        yield backend


@pytest.fixture
def site(backend: Backend) -> Site:
    """Return a place for a proxy."""
    return Site(backend)


def test_start_and_status(site: Site) -> None:
    """A master starts the accepted snapshot with all its workers, and says so."""
    with LoneProxy(site.snapshot(workers=2)) as proxy:
        proxy.run()
        status = proxy.status()
        assert status["program"] == "proxy-api"
        assert status["snapshot"] == 1
        assert status["listeners"] == [{"frontend": "frontend", "host": "::", "port": site.port}]
        (generation,) = proxy.generations().values()
        assert [each["phase"] for each in generation["workers"]] == ["accepting"] * 2
        assert {each["pid"] for each in generation["workers"]} == {each["pid"] for each in proxy.workers()}
        assert accepts(site.port)


def loaded(site: Site, *, sessions: int = 20, rate: float = 200.0) -> Load:
    """Return running load on the proxy."""
    return Load(port=site.port, sessions=sessions, rate=rate, pause=0.2)


def settle(load: Load, *, more: int = 50) -> None:
    """Wait until some more new connections were made."""
    before = load.report().completed
    wait_until(lambda: load.report().completed >= before + more, what="load goes on")


def sessions(proxy: LoneProxy) -> dict[int, object]:
    """Return how many sessions each generation has."""
    return {number: each["sessions"] for number, each in proxy.generations().items()}


@pytest.mark.promise("program", "proxy-api")
def test_new_generations_under_load(site: Site) -> None:
    """Five new generations under load: none fails, old sessions go on, and the newest alone accepts."""
    with LoneProxy(site.snapshot(workers=2, drain=600.0)) as proxy:
        proxy.run()
        with loaded(site) as load:
            load.wait_for_sessions()
            for number in range(2, 7):
                settle(load)
                answer = proxy.reload(site.snapshot(number, workers=2, drain=600.0))
                assert answer["changed"]
                assert proxy.generation() == answer["generation"] == number
            settle(load)
            load.stop_new()
            load.open_sessions(20)
            load.wait_for_sessions(40)
            wait_until(lambda: sessions(proxy) == {6: 20, 1: 20}, what="the newest has the new ones")
            report = load.report()
        assert report.failures == {}
        assert len(report.living) == 40
        assert proxy.status()["snapshot"] == 6
        assert proxy.phase(1) == "draining"


def test_sessions_end_at_the_drain_deadline(site: Site) -> None:
    """A session of an old generation lives until the drain deadline, and not much longer."""
    with LoneProxy(site.snapshot(drain=2.0)) as proxy:
        proxy.run()
        with Load(port=site.port, sessions=5, pause=0.1) as load:
            load.wait_for_sessions()
            proxy.reload(site.snapshot(2, drain=2.0))
            deadline = proxy.generations()[1]["drain_deadline"]
            assert proxy.generations()[1]["sessions"] == 5
            wait_until(lambda: len(load.report().ended) == 5, what="sessions are cut")
            assert min(each.ended for each in load.report().ended) >= deadline - 0.1
        wait_until(lambda: 1 not in proxy.generations(), what="the old generation is gone")


@pytest.mark.slow("generations of real workers under load")
def test_prepared_is_not_accepting(site: Site) -> None:
    """A prepared generation waits; abort ends it and what was bound for it, and can be repeated."""
    other = free_port()
    with LoneProxy(site.snapshot()) as proxy:
        proxy.run()
        proxy.propose(site.snapshot(2, frontend={"binds": [bind(site.port, host="::"), bind(other)]}))
        answer = proxy.ask("prepare", snapshot=2)
        assert answer == {"ok": True, "changed": True, "generation": 2}
        assert proxy.ask("prepare", snapshot=2) == answer
        assert proxy.phase(2) == "ready"
        assert proxy.phase(1) == "accepting"
        for _ in range(2):
            assert proxy.ask("abort", snapshot=2) == {"ok": True}
            assert list(proxy.generations()) == [1]
            assert not accepts(other)
        assert not proxy.ask("commit", snapshot=2)["ok"]
        assert accepts(site.port)


@pytest.mark.slow("generations of real workers under load")
def test_another_prepare_gives_up_the_first(site: Site) -> None:
    """Preparing another snapshot ends the generation of the one before."""
    with LoneProxy(site.snapshot()) as proxy:
        proxy.run()
        proxy.propose(site.snapshot(2))
        proxy.ask("prepare", snapshot=2)
        proxy.reload(site.snapshot(3))
        assert proxy.status()["snapshot"] == 3
        assert 2 not in proxy.generations()


def test_live_change(site: Site) -> None:
    """Pools, limits and timeouts are taken without a new generation, by a replaced worker too."""
    with LoneProxy(site.snapshot()) as proxy:
        proxy.run()
        changed = site.snapshot(1, frontend={"max_connections": 7, "timeout_client": 9.0}, drain=9.0)
        answer = proxy.reload(replace(changed, number=2))
        assert answer == {"ok": True, "changed": True}
        (worker,) = wait_until(
            lambda: [each for each in proxy.workers() if each["snapshot"] == 2], what="the worker obeys"
        )
        assert list(proxy.generations()) == [1]
        kill(worker["pid"])
        (replacement,) = wait_until(
            lambda: [each for each in proxy.workers() if each["phase"] == "accepting"], what="a replacement"
        )
        assert (replacement["generation"], replacement["snapshot"]) == (1, 2)
        assert proxy.reload(replace(changed, number=3))["changed"] is False


def test_a_live_change_that_a_worker_cannot_take(site: Site) -> None:
    """It is refused before anything has changed, with the worker's reason."""
    with LoneProxy(site.snapshot()) as proxy:
        proxy.run()
        # More than the 32767 seconds that Linux takes for TCP_KEEPIDLE.
        asked = {"keepalive": KeepAlive(idle=43200.0, interval=10.0, count=3)}
        proxy.propose(replace(site.snapshot(frontend=asked), number=2))
        answer = proxy.ask("prepare", snapshot=2)
        assert not answer["ok"]
        assert answer["errors"][0]["message"].startswith(
            "worker 1.0: snapshot 2: frontend frontend: socket option"
        )
        assert [each["snapshot"] for each in proxy.workers()] == [1]
        assert not proxy.ask("commit", snapshot=2)["ok"]


@pytest.mark.slow("generations of real workers under load")
def test_a_live_change_that_a_worker_does_not_take(site: Site) -> None:
    """The answer is no until it obeys: it is told again, and replaced if that does not help."""
    with LoneProxy(site.snapshot(workers=2)) as proxy:
        proxy.run()
        before = pids(proxy)
        changed = replace(site.snapshot(workers=2, frontend={"max_connections": 7}), number=2)
        with Load(port=site.port, rate=50.0) as load:
            settle(load, more=20)
            proxy.propose(changed)
            assert proxy.ask("prepare", snapshot=2)["ok"]
            file = proxy.paths.snapshot(2)
            file.rename(file.with_suffix(".away"))
            answer = proxy.ask("commit", snapshot=2)
            assert not answer["ok"]
            assert [
                "continues with snapshot 1: snapshot 2:" in each["message"] for each in answer["errors"]
            ] == [True] * 2
            assert proxy.status()["failure"]
            wait_until(lambda: proxy.log().count("worker-refused") >= 6, what="others are to replace them")
            file.with_suffix(".away").rename(file)
            wait_until(lambda: not proxy.status()["failure"], what="all obey")
            wait_until(lambda: {w["snapshot"] for w in proxy.workers()} == {2}, what="the old ones are gone")
            settle(load, more=20)
            assert load.report().failures == {}
        assert not set(before) & set(pids(proxy))
        assert list(proxy.generations()) == [1]


def test_repeating_is_harmless(site: Site) -> None:
    """Prepare and commit of what runs already change nothing."""
    with LoneProxy(site.snapshot()) as proxy:
        proxy.run()
        (before,) = proxy.workers()
        assert proxy.reload(site.snapshot())["changed"] is False
        assert proxy.ask("commit", snapshot=1) == {"ok": True, "changed": False}
        assert [each["pid"] for each in proxy.workers()] == [before["pid"]]


@pytest.mark.slow("generations of real workers under load")
def test_worker_count(site: Site) -> None:
    """Another number of workers is a new generation with that many."""
    with LoneProxy(site.snapshot(workers=1)) as proxy:
        proxy.run()
        proxy.reload(site.snapshot(2, workers=3))
        accepting = [each for each in proxy.workers() if each["phase"] == "accepting"]
        assert len([each for each in accepting if each["generation"] == 2]) == 3


def test_bind_conflict(site: Site) -> None:
    """A bind that cannot be had refuses the snapshot, names the bind and its owner, and changes nothing."""
    taken = site.backend.port
    with LoneProxy(site.snapshot()) as proxy:
        proxy.run()
        binds = [bind(site.port, host="::"), bind(free_port()), bind(taken)]
        proxy.propose(site.snapshot(2, frontend={"binds": binds}))
        answer = proxy.ask("prepare", snapshot=2)
        assert not answer["ok"]
        (error,) = answer["errors"]
        assert error["path"] == "api.frontends.frontend-2.bind"
        assert error["message"].startswith(f"127.0.0.1:{taken}: address in use by ")
        assert f"(pid {site.backend.pid})" in error["message"]
        assert list(proxy.generations()) == [1]
        assert not accepts(binds[1].port)
        assert accepts(site.port)


def test_bind_moves_between_frontends(site: Site) -> None:
    """A bind that another frontend has now keeps its socket; one that nobody has any more is closed."""
    other = free_port()
    first = [
        frontend("one", binds=[bind(site.port)]),
        frontend("two", binds=[bind(other)]),
    ]
    swapped = [frontend("two", binds=[bind(site.port)])]
    with LoneProxy(replace(site.snapshot(), groups=(group(frontends=first),))) as proxy:
        proxy.run()
        with Load(port=site.port, rate=100.0) as load:
            settle(load, more=20)
            proxy.reload(replace(site.snapshot(2), groups=(group(frontends=swapped),)))
            settle(load, more=50)
            assert load.report().failures == {}
        assert proxy.status()["listeners"] == [{"frontend": "two", "host": "127.0.0.1", "port": site.port}]
        assert not accepts(other)
        proxy.reload(replace(site.snapshot(3), groups=(group(frontends=first),)))
        assert accepts(other)


@pytest.mark.slow("generations of real workers under load")
@pytest.mark.parametrize(
    ("fault", "startup", "reason"),
    [("crash", 60.0, "worker 0 exited 3"), ("silent", 1.0, "was not ready within 1 s")],
)
def test_broken_generation(site: Site, fault: str, startup: float, reason: str) -> None:
    """A generation that crashes or is never ready is answered with why; the old one never noticed."""
    with LoneProxy(site.snapshot()) as proxy:
        proxy.run()
        proxy.kill()
        proxy.run(impatient=True, startup=startup)  # the workers that are to be ready are there already
        before = proxy.workers()
        proxy.fault(2, fault)
        with loaded(site) as load:
            load.wait_for_sessions()
            proxy.propose(site.snapshot(2))
            answer = proxy.ask("prepare", snapshot=2)
            assert not answer["ok"]
            assert reason in answer["errors"][0]["message"]
            settle(load)
            assert load.report().failures == {}
            assert len(load.report().living) == 20
        assert [each["pid"] for each in proxy.workers()] == [each["pid"] for each in before]
        assert proxy.status()["prepared"] is None


@pytest.mark.slow("generations of real workers under load")
@pytest.mark.parametrize("fault", ["brittle", "fragile"])
def test_worker_dies_around_the_commit(site: Site, fault: str) -> None:
    """Workers that die before or after they are told to accept are replaced; no connection is refused."""
    with LoneProxy(site.snapshot()) as proxy:
        proxy.run(impatient=True)
        proxy.fault(2, fault)
        with Load(port=site.port, rate=100.0) as load:
            settle(load, more=20)
            proxy.propose(site.snapshot(2))
            assert proxy.ask("prepare", snapshot=2)["ok"]
            wait_until(lambda: fault == "fragile" or "worker-died" in proxy.log(), what="a ready one died")
            proxy.fault(0, "none")
            assert proxy.ask("commit", snapshot=2)["ok"]
            wait_until(lambda: "worker-died" in proxy.log(), what="a worker died")
            wait_until(lambda: proxy.phase(2) == "accepting", what="the new generation accepts")
            settle(load, more=20)
            assert "refused" not in load.report().failures


@pytest.mark.slow("generations of real workers under load")
def test_killed_worker(site: Site) -> None:
    """A worker that is killed is replaced in its place, and no connection is refused."""
    with LoneProxy(site.snapshot(workers=2)) as proxy:
        proxy.run()
        with loaded(site, sessions=0) as load:
            settle(load)
            victim = proxy.workers()[0]
            kill(int(str(victim["pid"])))
            settle(load)
            wait_until(lambda: len(proxy.workers()) == 2, what="a replacement")
            settle(load)
            failures = load.report().failures
        assert "refused" not in failures
        assert "timeout" not in failures
        place = {(each["generation"], each["index"]) for each in proxy.workers()}
        assert place == {(1, 0), (1, 1)}
        assert victim["pid"] not in {each["pid"] for each in proxy.workers()}


def pids(proxy: LoneProxy) -> list[object]:
    """Return the process ids of all workers."""
    return sorted(str(each["pid"]) for each in proxy.workers())


def beyond_the_drain(load: Load, seconds: float) -> None:
    """Wait until a generation that drains since now would have been cut, with an impatient master's grace."""
    over = time.monotonic() + seconds + KILL_GRACE + 1.0
    wait_until(lambda: time.monotonic() > over and load.report(), what="the drain time is over")


def assert_nothing_lost(load: Load, sessions: int = 20) -> None:
    """Fail where a connection failed or a session ended."""
    report = load.report()
    assert report.failures == {}
    assert report.ended == []
    assert len(report.living) == sessions


@pytest.mark.slow("generations of real workers under load")
@pytest.mark.parametrize("how", ["kill", "restart"])
def test_a_new_master_cuts_nothing(site: Site, how: str) -> None:
    """Killed or restarted, twice in a row: the next master goes on with the generation that is there.

    Not a session ends, then or when the drain time is over, and no worker is started.
    """
    with LoneProxy(site.snapshot(workers=2, drain=1.0)) as proxy, supervisord(proxy, state=None):
        proxy.run(impatient=True, **_PATIENT)
        before = pids(proxy)
        with loaded(site) as load:
            load.wait_for_sessions()
            for _ in range(2):
                end_master(proxy, how)
                settle(load)
                proxy.run(impatient=True, **_PATIENT)
            beyond_the_drain(load, 1.0)
            settle(load)
            assert_nothing_lost(load)
        assert pids(proxy) == before
        assert [each["phase"] for each in proxy.generations().values()] == ["accepting"]
        assert proxy.status()["generation"] == 1
        assert proxy.reload(site.snapshot(2, workers=2))["generation"] == 2


def end_master(proxy: LoneProxy, how: str) -> None:
    """End the master at once, or as supervisorctl's restart does."""
    if how == "kill":
        proxy.kill()
        return
    proxy.terminate()
    assert proxy.wait(timeout=60.0) == 0


@pytest.mark.slow("generations of real workers under load")
def test_what_a_reload_has_prepared_outlives_a_start_that_is_tried_again(site: Site) -> None:
    """A master whose accepted snapshot was damaged tries again, but not in the middle of a reload."""
    with LoneProxy(site.snapshot(drain=1.0)) as proxy:
        proxy.run()
        proxy.kill()
        proxy.paths.accepted.write_bytes(b"damaged")
        proxy.start()
        wait_until(lambda: "start-failed" in proxy.log(), what="it cannot start")
        proxy.propose(site.snapshot(2))
        assert proxy.ask("prepare", snapshot=2)["ok"]
        started, tries = (proxy.log().count(each) for each in ("generation-started", "start-failed"))
        proxy.accept(site.snapshot(3))  # as `reload` does where it has found the last good one
        wait_until(
            lambda: (
                proxy.log().count("start-failed") > tries or proxy.log().count("generation-started") > started
            ),
            what="it has tried again",
        )
        assert proxy.ask("commit", snapshot=2)["ok"]
        wait_until(lambda: proxy.status()["snapshot"] == 2 and proxy.phase() == "accepting", what="it serves")


@pytest.mark.slow("generations of real workers under load")
def test_a_worker_that_died_without_a_master_is_replaced(site: Site) -> None:
    """The generation goes on, with another worker in the place of the dead one; the others keep sessions."""
    with LoneProxy(site.snapshot(workers=2, drain=1.0)) as proxy:
        proxy.run(impatient=True, **_PATIENT)
        with loaded(site, rate=100.0) as load:
            load.wait_for_sessions()
            survivor, victim = proxy.workers()
            proxy.kill()
            kill(int(str(victim["pid"])))
            proxy.run(impatient=True, **_PATIENT)
            wait_until(lambda: len(proxy.workers()) == 2, what="a replacement")
            wait_until(
                lambda: {each["phase"] for each in proxy.workers()} == {"accepting"}, what="it accepts"
            )
            living = len(load.report().living)
            assert living >= 20 - int(str(victim["sessions"])) - 2
            beyond_the_drain(load, 1.0)
            assert len(load.report().living) == living
            assert not {"refused", "timeout"} & set(load.report().failures)
        assert str(survivor["pid"]) in pids(proxy)
        assert {(each["generation"], each["index"]) for each in proxy.workers()} == {(1, 0), (1, 1)}


@pytest.mark.slow("generations of real workers under load")
def test_a_live_change_came_while_there_was_no_master(site: Site) -> None:
    """The next master tells the workers of it, and keeps them."""
    with LoneProxy(site.snapshot(drain=1.0)) as proxy:
        proxy.run(impatient=True, **_PATIENT)
        before = pids(proxy)
        with loaded(site) as load:
            load.wait_for_sessions()
            proxy.kill()
            changed = site.snapshot(
                1, drain=1.0, frontend={"max_connections": 777, "deny": ("192.0.2.1/32",)}
            )
            proxy.accept(replace(changed, number=2))
            proxy.run(impatient=True, **_PATIENT)
            wait_until(lambda: [w["snapshot"] for w in proxy.workers()] == [2], what="the worker obeys")
            beyond_the_drain(load, 1.0)
            assert_nothing_lost(load)
        assert pids(proxy) == before
        assert proxy.status()["snapshot"] == 2


@pytest.mark.slow("generations of real workers under load")
def test_another_configuration_was_accepted_without_a_master(site: Site) -> None:
    """What the workers cannot take is a new generation, and the orphans drain."""
    with LoneProxy(site.snapshot(drain=60.0)) as proxy:
        proxy.run()
        with loaded(site) as load:
            load.wait_for_sessions()
            proxy.kill()
            proxy.accept(site.snapshot(2, drain=60.0))
            proxy.run()
            wait_until(lambda: proxy.status()["generation"] == 2, what="the new generation accepts")
            wait_until(lambda: proxy.phase(1) == "draining", what="orphans drain")
            settle(load)
            assert_nothing_lost(load)
        wait_until(lambda: 1 not in proxy.generations(), what="orphans are gone")
        assert [path.name for path in proxy.paths.runtime.glob("worker-*.control")] == [
            "worker-proxy-api-2-0.control"
        ]


@pytest.mark.slow("generations of real workers under load")
def test_a_commit_in_whose_middle_the_master_died(site: Site) -> None:
    """Of two generations that accept the newer one goes on, and the older one drains."""
    with LoneProxy(site.snapshot(workers=2, drain=60.0)) as proxy:
        proxy.run()
        with loaded(site) as load:
            load.wait_for_sessions()
            proxy.propose(site.snapshot(2, workers=2, drain=60.0))
            assert proxy.ask("prepare", snapshot=2)["ok"]
            proxy.kill()
            proxy.accept(site.snapshot(2, workers=2, drain=60.0))
            ask(proxy.paths.worker_control("proxy-api", 2, 0), "accept")
            proxy.run()
            wait_until(lambda: proxy.accepting() == {2}, what="all of the newer one accept, the older drain")
            settle(load)
            assert_nothing_lost(load)
        assert [each["index"] for each in proxy.generations()[2]["workers"]] == [0, 1]


@pytest.mark.slow("generations of real workers under load")
def test_reload_during_a_take_over(site: Site) -> None:
    """A reload that comes while the next master waits for a worker that hangs is done after the take-over."""
    with LoneProxy(site.snapshot(workers=2)) as proxy:
        proxy.run(impatient=True, **_PATIENT)
        hanging = int(str(proxy.workers()[1]["pid"]))
        os.kill(hanging, signal.SIGSTOP)
        proxy.kill()
        proxy.start(impatient=True, **_PATIENT)
        wait_until(proxy.status, what="the next master answers")
        proxy.reload(site.snapshot(2, workers=2))
        assert proxy.phase(2) == "accepting"
        os.kill(hanging, signal.SIGCONT)
        wait_until(lambda: 1 not in proxy.generations(), what="it heard that it drains")


@pytest.mark.slow("generations of real workers under load")
def test_a_worker_that_hung_at_the_take_over_goes_on(site: Site) -> None:
    """It keeps its place and its sessions, and obeys again once it answers."""
    with LoneProxy(site.snapshot(workers=2, drain=1.0)) as proxy:
        proxy.run(impatient=True, **_PATIENT)
        before = pids(proxy)
        with Load(port=site.port, sessions=20, pause=3600.0) as load:
            load.wait_for_sessions()
            hanging = int(str(proxy.workers()[1]["pid"]))
            os.kill(hanging, signal.SIGSTOP)
            proxy.kill()
            proxy.start(impatient=True, **_PATIENT)
            wait_until(lambda: "worker-silent" in proxy.log(), what="the worker is missed")
            os.kill(hanging, signal.SIGCONT)
            wait_until(lambda: proxy.phase() == "accepting", what="the master serves")
            assert proxy.reload(replace(site.snapshot(1, workers=2, drain=2.0), number=2))["changed"]
            assert [each["snapshot"] for each in proxy.workers()] == [2, 2]
            assert len(load.report().living) == 20
        assert pids(proxy) == before


@pytest.mark.slow("generations of real workers under load")
def test_a_worker_that_hangs_for_good_is_replaced(site: Site) -> None:
    """One that does not answer its new master ends at last, and another one takes its place."""
    with LoneProxy(site.snapshot(workers=2)) as proxy:
        proxy.run(impatient=True)
        hanging = int(str(proxy.workers()[1]["pid"]))
        os.kill(hanging, signal.SIGSTOP)
        proxy.kill()
        proxy.start(impatient=True)
        wait_until(lambda: not alive(hanging), what="it is ended")
        wait_until(lambda: len(proxy.workers()) == 2, what="another takes its place")
        wait_until(lambda: proxy.phase() == "accepting", what="the generation goes on")
        assert {each["generation"] for each in proxy.workers()} == {1}


def test_killed_during_a_reload(site: Site) -> None:
    """A master killed with a generation prepared leaves nothing of that behind."""
    with LoneProxy(site.snapshot()) as proxy:
        proxy.run()
        with loaded(site) as load:
            load.wait_for_sessions()
            proxy.propose(site.snapshot(2))
            proxy.ask("prepare", snapshot=2)
            ready = next(each for each in proxy.workers() if each["phase"] == "ready")
            proxy.kill()
            proxy.run()
            wait_until(lambda: not alive(int(str(ready["pid"]))), what="the useless worker is gone")
            settle(load)
            assert load.report().failures == {}
        assert proxy.status()["generation"] == 1


@pytest.mark.slow("generations of real workers under load")
def test_few_open_files_are_said_once(site: Site) -> None:
    """The log says how many sessions each worker can hold, and again only when a number has changed."""

    def said() -> list[dict[str, int]]:
        lines = logged(proxy.log(), "open-files-low")
        return [{key: each[key] for key in ("workers", "open_files", "sessions", "wanted")} for each in lines]

    wanted = {"frontend": {"max_connections": 100_000}}
    with LoneProxy(site.snapshot(**wanted)) as proxy:
        proxy.run()
        before = len(said())  # this machine may allow enough
        resource.prlimit(proxy.process.pid, resource.RLIMIT_NOFILE, (1000, 1000))
        proxy.reload(site.snapshot(2, **wanted))
        proxy.reload(site.snapshot(3, **wanted))
        assert said()[before:] == [{"workers": 1, "open_files": 1000, "sessions": 406, "wanted": 100_000}]
        proxy.reload(site.snapshot(4, workers=2, **wanted))
        assert said()[-1] == {"workers": 2, "open_files": 1000, "sessions": 406, "wanted": 50_000}


@pytest.mark.slow("generations of real workers under load")
def test_restart_while_a_generation_drains(site: Site) -> None:
    """The next master lets what drains go on to its deadline, beside the generation that it replaces."""
    with LoneProxy(site.snapshot(drain=60.0)) as proxy, supervisord(proxy, state=None):
        proxy.run()
        with Load(port=site.port, sessions=5, pause=0.1) as load:
            load.wait_for_sessions()
            proxy.reload(site.snapshot(2, drain=60.0))
            proxy.terminate()
            assert proxy.wait() == 0
            proxy.run()
            assert proxy.phase(1) == "draining"
            assert proxy.generations()[1]["sessions"] == 5
            assert len(load.report().living) == 5


@pytest.mark.slow("generations of real workers under load")
def test_killed_while_a_generation_starts(site: Site) -> None:
    """Workers that were starting when their master was killed end, though no master ever heard of them."""
    with LoneProxy(site.snapshot()) as proxy:
        proxy.run()
        proxy.propose(site.snapshot(2, workers=3))
        with ThreadPoolExecutor() as pool:
            asked = pool.submit(proxy.ask, "prepare", snapshot=2)
            wait_until(lambda: 2 in proxy.generations(), what="a generation starts")
            proxy.kill()
            assert asked.exception()
        proxy.run()
        wait_until(lambda: {each["generation"] for each in proxy.workers()} == {1}, what="only ours are left")
        ours = {*pids(proxy), str(proxy.process.pid)}
        setting = f"APPLIANCE_RUNTIME_DIR={proxy.paths.runtime}"
        wait_until(lambda: {str(pid) for pid in with_environment(setting)} == ours, what="no stray worker")


def test_take_over_of_a_draining_generation(site: Site) -> None:
    """A generation that drains keeps its deadline under the next master."""
    with LoneProxy(site.snapshot(drain=4.0)) as proxy:
        proxy.run()
        with Load(port=site.port, sessions=3, pause=0.1) as load:
            load.wait_for_sessions()
            proxy.reload(site.snapshot(2, drain=60.0))
            deadline = proxy.generations()[1]["drain_deadline"]
            proxy.kill()
            proxy.run()
            assert abs(proxy.generations()[1]["drain_deadline"] - deadline) < 0.5
            assert [proxy.phase(number) for number in (1, 2)] == ["draining", "accepting"]


@pytest.mark.slow("generations of real workers under load")
def test_take_over_when_nothing_can_start(site: Site) -> None:
    """When the next master's generation cannot start, the orphans serve on and the reason is told."""
    with LoneProxy(site.snapshot()) as proxy:
        proxy.run()
        proxy.kill()
        proxy.accept(site.snapshot(2))
        proxy.fault(2, "crash")
        with loaded(site) as load:
            load.wait_for_sessions()
            proxy.start(impatient=True)
            failure = wait_until(lambda: proxy.status().get("failure"), what="the failure is told")
            assert "exited 3" in failure["problems"][0]["message"]
            assert (proxy.paths.runtime / "proxy-api.failure.json").exists()
            wait_until(lambda: proxy.phase(3) == "accepting", what="the next try succeeds")
            settle(load)
            assert load.report().failures == {}
        wait_until(
            lambda: not (proxy.paths.runtime / "proxy-api.failure.json").exists(), what="the failure is over"
        )


def test_reload_ends_a_failure(site: Site) -> None:
    """A committed reload ends the failure of a start, in the status and as a file."""
    with LoneProxy(site.snapshot()) as proxy:
        proxy.run()
        proxy.kill()
        proxy.accept(site.snapshot(2, frontend={"binds": [bind(site.port), bind(site.backend.port)]}))
        proxy.start()
        wait_until(lambda: proxy.status().get("failure"), what="the failure is told")
        proxy.reload(site.snapshot(3))
        assert not (proxy.paths.runtime / "proxy-api.failure.json").exists()
        assert proxy.status()["failure"] is None


def test_a_lock_that_takes_no_number(site: Site) -> None:
    """A device in the place of the lock is set aside: the next master goes on with what was accepted."""
    port = free_port()
    with LoneProxy(site.snapshot()) as proxy:
        proxy.run()
        proxy.kill()
        lock = proxy.paths.runtime / "proxy-api.lock"
        lock.unlink()
        lock.symlink_to("/dev/full")
        proxy.accept(site.snapshot(2, frontend={"binds": [bind(site.port, host="::"), bind(port)]}))
        proxy.start()
        wait_until(lambda: accepts(port), what="the new bind is served", timeout=60.0)
        assert accepts(site.port)
        assert lock.is_file()
        assert not lock.is_symlink()


def test_cannot_start(site: Site) -> None:
    """With nothing that serves, a start that fails leaves the reason in a file and exits 1."""
    with LoneProxy(site.snapshot(frontend={"binds": [bind(site.backend.port)]})) as proxy:
        proxy.start()
        assert proxy.wait(timeout=60.0) == 1
        failure = json.loads((proxy.paths.runtime / "proxy-api.failure.json").read_text())
        assert "address in use by" in failure["problems"][0]["message"]
        assert not proxy.paths.control("proxy-api").exists()


def test_no_such_group(site: Site) -> None:
    """A master whose group the configuration does not have has nothing to do, and exits 0."""
    with LoneProxy(replace(site.snapshot(), groups=())) as proxy:
        proxy.start()
        assert proxy.wait(timeout=60.0) == 0
        assert "nothing-to-do" in proxy.log()


@pytest.mark.slow("generations of real workers under load")
def test_group_disappears(site: Site) -> None:
    """A reload without the group drains its workers, closes its listeners, and ends the program."""
    with LoneProxy(site.snapshot()) as proxy:
        proxy.run()
        with Load(port=site.port, sessions=2, pause=0.1) as load:
            load.wait_for_sessions()
            proxy.reload(replace(site.snapshot(2), groups=()))
            assert not accepts(site.port)
            assert len(load.report().living) == 2
        assert proxy.wait(timeout=60.0) == 0


@pytest.mark.slow("generations of real workers under load")
def test_second_master(site: Site) -> None:
    """A second master of the same group refuses to start, and does not disturb the first."""
    with LoneProxy(site.snapshot()) as proxy:
        proxy.run()
        proxy.start()
        assert proxy.wait(timeout=60.0) == 1
        assert proxy.status()["ok"]
        assert accepts(site.port)


@pytest.mark.slow("generations of real workers under load")
def test_draining_generations_are_limited(site: Site) -> None:
    """Of too many draining generations the oldest is cut, and the log says so."""
    limit = {"drain": 60.0, "reload": Reload(sockets=(), max_draining=2, sessions="drain")}
    with LoneProxy(site.snapshot(**limit)) as proxy:
        proxy.run()
        with Load(port=site.port, sessions=1, pause=0.1) as load:
            for number in range(2, 5):
                load.wait_for_sessions(number - 1)
                proxy.reload(site.snapshot(number, **limit))
                # The old generation accepts until it has heard that it drains.
                wait_until(lambda n=number: proxy.accepting() == {n}, what="only the new one accepts")
                load.open_sessions(1)
            wait_until(lambda: sorted(proxy.generations()) == [2, 3, 4], what="the oldest is gone")
            assert [proxy.phase(number) for number in (2, 3, 4)] == ["draining", "draining", "accepting"]
        assert '"generation-cut"' in proxy.log()


@pytest.mark.slow("generations of real workers under load")
def test_terminate_by_hand(site: Site) -> None:
    """Without supervisord TERM drains: sessions go on, nothing new comes, and the last one is the end."""
    with LoneProxy(site.snapshot(drain=60.0)) as proxy:
        proxy.run()
        with Load(port=site.port, sessions=2, pause=0.1) as load:
            load.wait_for_sessions()
            proxy.terminate()
            wait_until(lambda: not accepts(site.port), what="nothing listens")
            assert proxy.status()["stopping"]
            assert not proxy.ask("prepare", snapshot=1)["ok"]
            assert len(load.report().living) == 2
        assert proxy.wait(timeout=60.0) == 0
        assert proxy.workers() == []


@pytest.mark.slow("generations of real workers under load")
def test_second_terminate(site: Site) -> None:
    """A second TERM ends everything at once."""
    with LoneProxy(site.snapshot(drain=600.0)) as proxy:
        proxy.run()
        with Load(port=site.port, sessions=2, pause=0.1) as load:
            load.wait_for_sessions()
            proxy.terminate()
            wait_until(lambda: proxy.status().get("stopping"), what="it stops")
            proxy.terminate(number=signal.SIGINT)
            assert proxy.wait(timeout=60.0) == 0
            assert proxy.workers() == []
            wait_until(lambda: not load.report().living, what="sessions are over")


def test_restart_under_supervisord(site: Site) -> None:
    """While supervisord runs, TERM leaves the workers to the next master: no failed connection."""
    with LoneProxy(site.snapshot(drain=60.0)) as proxy, supervisord(proxy, state=None):
        proxy.run()
        with loaded(site) as load:
            load.wait_for_sessions()
            proxy.terminate()
            assert proxy.wait(timeout=60.0) == 0
            settle(load)
            proxy.run()
            settle(load)
            assert load.report().failures == {}
            assert len(load.report().living) == 20


@pytest.mark.slow("generations of real workers under load")
def test_left_for_good(site: Site) -> None:
    """Workers that were left, and that no master comes for, drain."""
    with LoneProxy(site.snapshot(drain=60.0)) as proxy, supervisord(proxy, state=None):
        proxy.run(impatient=True)
        proxy.terminate()
        assert proxy.wait(timeout=60.0) == 0
        assert accepts(site.port)
        wait_until(lambda: proxy.workers() == [], what="workers drain")


@pytest.mark.slow("generations of real workers under load")
def test_supervisord_shuts_down(site: Site) -> None:
    """When supervisord is shutting down TERM drains, and the program ends with its workers."""
    with LoneProxy(site.snapshot(drain=60.0)) as proxy, supervisord(proxy, state=6):
        proxy.run()
        with Load(port=site.port, sessions=2, pause=0.1) as load:
            load.wait_for_sessions()
            proxy.terminate()
            wait_until(lambda: not accepts(site.port), what="nothing listens")
            assert len(load.report().living) == 2
        assert proxy.wait(timeout=60.0) == 0
        assert proxy.workers() == []


def test_hang_up(site: Site) -> None:
    """A lost terminal is nothing to a master or its workers."""
    with LoneProxy(site.snapshot()) as proxy:
        proxy.run()
        proxy.terminate(number=signal.SIGHUP)
        for worker in proxy.workers():
            os.kill(int(str(worker["pid"])), signal.SIGHUP)
        assert proxy.status()["ok"]
        assert len(proxy.workers()) == 1


class _Supervisord(BaseHTTPRequestHandler):
    """Answers getState as supervisord does: with its state, or the fault that it shuts down."""

    fault: int | None = None

    def do_POST(self) -> None:  # the standard library's name
        """Answer any call."""
        self.rfile.read(int(self.headers["Content-Length"]))
        fault = self.fault
        body = (
            xmlrpc.client.dumps(({"statecode": 1, "statename": "RUNNING"},), methodresponse=True)
            if fault is None
            else xmlrpc.client.dumps(xmlrpc.client.Fault(fault, "SHUTDOWN_STATE"))
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        """Return a name for the log: a unix socket has none."""
        return "unix"

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def supervisord(proxy: LoneProxy, *, state: int | None) -> Iterator[None]:
    """Answer at supervisord's socket; `state` is the fault of every call, None for none."""
    answering = type("Answering", (_Supervisord,), {"fault": state})
    with UnixStreamServer(str(proxy.paths.supervisor_socket), answering) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.slow("generations of real workers under load")
@pytest.mark.parametrize("host", ["192.0.2.200", "127.0.0.1"])
@pytest.mark.parametrize("revision", [2, 1])
def test_a_virtual_ip_that_goes_from_under_a_bind(site: Site, host: str, revision: int) -> None:
    """It is refused where its bind is named, though the socket is there: the next start could not bind it.

    An address that this machine has besides is none of that.
    """
    port = free_port()

    def served(number: int, address: str, revision: int = 1) -> Snapshot:
        routers = (virtual_router(addresses=(f"{address}/24",)),)
        settings = {"binds": [bind(port, host=host)], "name": site.name(revision)}
        return site.snapshot(number, frontend=settings, virtual_routers=routers)

    with LoneProxy(served(1, host)) as proxy:
        proxy.run()
        proxy.propose(served(2, "192.0.2.201", revision))
        answer = proxy.ask("prepare", snapshot=2)
        if host == "127.0.0.1":
            assert answer["ok"]
            return
        assert not answer["ok"]
        (error,) = answer["errors"]
        assert error["path"] == f"api.frontends.{site.name(revision)}.bind"
        assert f"{host}:{port}: no interface will have this address" in error["message"]
        proxy.propose(served(3, host, revision))
        assert proxy.ask("prepare", snapshot=3)["ok"]


def _moved(site: Site, port: int) -> Snapshot:
    """Return a second snapshot in which `ingress` has the bind, and ours has another port."""
    own = site.snapshot(2, drain=60.0, frontend={"binds": [bind(port)]})
    other = group(
        name="ingress", workers=1, frontends=[frontend(name="moved", binds=[bind(site.port, host="::")])]
    )
    return replace(own, groups=(*own.groups, other))


@pytest.mark.slow("generations of real workers under load")
def test_a_new_master_lends_what_old_workers_still_accept_on(site: Site) -> None:
    """A bind goes to another group, and the master dies before that has it: the next one lends it."""
    with LoneProxy(site.snapshot(drain=60.0)) as proxy:
        proxy.run()
        proxy.reload(_moved(site, free_port()))
        assert proxy.ask("lend", port=site.port)["lent"] == 1
        proxy.kill()
        proxy.run()
        wait_until(lambda: proxy.status().get("snapshot") == 2, what="the next master has started")
        assert proxy.ask("lend", port=site.port)["lent"] == 1
        assert accepts(site.port)
        assert proxy.ask("taken", snapshot=2)["ok"]
        wait_until(lambda: not accepts(site.port), what="the old workers have let go")
        assert proxy.ask("lend", port=site.port)["lent"] == 0
