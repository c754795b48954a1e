"""Counters go on, whoever ends: workers, generations, masters, the program stats itself."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from pathlib import Path

import pytest
from support.load.load import Load
from support.processes.processes import kill
from support.processes.waiting import wait_until
from support.stats.stats_site import Sample, StatsSite, stats_site
from support.supervisor.release import Release

from appliance.net.boards import ended_workers

pytestmark = pytest.mark.programs

_RELOADS = 50 if os.environ.get("E2E_FULL") == "1" else 8


@pytest.fixture(scope="module")
def site() -> Iterator[StatsSite]:
    """Run three masters, an appliance of two workers and its statistics."""
    with stats_site(workers=2, drain=2.0) as made:
        yield made


class Watch:
    """The largest value that each counter has had; a smaller one is a failure."""

    def __init__(self, site: StatsSite) -> None:
        self._site = site
        self._most: dict[Sample, float] = dict(site.counters())

    def look(self) -> Mapping[Sample, float]:
        """Return the counters of now, none of which is below what it was."""
        now = self._site.counters()
        back = {
            name: (self._most[name], value) for name, value in now.items() if value < self._most.get(name, 0)
        }
        assert back == {}
        self._most.update(now)
        return now


def _ask(port: int, count: int) -> None:
    for _ in range(count):
        client = HTTPConnection("127.0.0.1", port, timeout=30)
        client.request("GET", "/who", headers={"Connection": "close"})
        assert client.getresponse().read()
        client.close()


def _total(counters: Mapping[Sample, float], name: str, **labels: str) -> float:
    return sum(
        value
        for (found, given), value in counters.items()
        if found == name and set(labels.items()) <= set(given)
    )


@pytest.mark.promise("docs/monitoring.md", "counters are what clients counted")
def test_the_sums_are_what_clients_counted(site: StatsSite):
    """Of generations that are gone too: each connection is counted once, with its bytes, in all places."""
    watch = Watch(site)
    before = watch.look()
    for _ in range(3):
        _ask(site.cluster.port, 7)
        answer = site.cluster.appliance.reload({**site.config(), "api": _other_workers(site)})
        assert answer["ok"], answer
        _ask(site.cluster.port, 7)
        watch.look()
    wait_until(
        lambda: len({each.generation for each in site.cluster.appliance.workers()}) == 1,
        what="old ones are gone",
    )
    expected = 42.0
    names = (
        "haproxy_frontend_sessions_total",
        "haproxy_server_sessions_total",
        "haproxy_backend_sessions_total",
    )
    for name in names:
        wait_until(
            lambda name=name: _grown(site, before, name) == expected, what=f"{name} grew by {expected}"
        )
    wait_until(
        lambda: _grown(site, before, "appliance_connect_duration_seconds_count") == expected, what="connects"
    )
    assert _grown(site, before, "haproxy_server_connection_attempts_total") == expected
    # A client has its answer before the worker has seen both sides end.
    ends = "appliance_connection_ends_total"
    wait_until(lambda: _grown(site, before, ends) == expected, what="all have ended")
    assert _grown(site, before, ends, reason="completed") == expected
    watch.look()


def _grown(site: StatsSite, before: Mapping[Sample, float], name: str, **labels: str) -> float:
    return _total(site.counters(), name, **labels) - _total(before, name, **labels)


def _other_workers(site: StatsSite) -> dict[str, object]:
    """Return the group with another number of workers than now, which brings a new generation."""
    api = site.config()["api"]
    assert isinstance(api, dict)
    return {**api, "workers": 1 if len(site.cluster.appliance.accepting()) == 2 else 2}


@pytest.mark.slow("a whole appliance and its readers")
def test_no_counter_goes_back_under_load(site: StatsSite):
    """Reloads, and deaths of workers, master, health and stats under load: every scrape is good."""
    appliance = site.cluster.appliance
    with Load(port=site.cluster.port, sessions=20, rate=100.0) as load:
        load.wait_for_sessions()
        watch = Watch(site)
        for number in range(_RELOADS):
            assert appliance.reload({**site.config(), "api": _other_workers(site)})["ok"]
            watch.look()
            victim = wait_until(appliance.accepting, what="a worker accepts")[0]
            kill(victim.pid)
            watch.look()
            wait_until(lambda pid=victim.pid: pid not in _accepting(site), what="the worker is replaced")
            watch.look()
            program = ("proxy-api", "health", "stats")[number % 3]
            appliance.wait_for_restart(program, appliance.kill(program))
            wait_until(lambda: _answers(site), what="stats answers")
            watch.look()
    watch.look()


@pytest.mark.slow("a whole appliance and its readers")
def test_every_connection_is_counted_once_through_deaths_and_reloads():
    """Who may die without ending a connection does, between reloads; clients counted what we did."""
    with stats_site(workers=2, drain=2.0) as site:
        _die_and_count(site)


def _die_and_count(site: StatsSite) -> None:
    appliance = site.cluster.appliance
    watch = Watch(site)
    before = watch.look()
    with Load(port=site.cluster.port, sessions=20, rate=100.0) as load:
        load.wait_for_sessions()
        for number in range(_RELOADS):
            assert appliance.reload({**site.config(), "api": _other_workers(site)})["ok"]
            watch.look()
            program = ("proxy-api", "health", "stats", "reload")[number % 4]
            appliance.wait_for_restart(program, appliance.kill(program))
            wait_until(lambda: _answers(site), what="stats answers")
            watch.look()
        load.stop_new()
        wait_until(lambda: load.report().under_way == 0, what="no connection is under way", timeout=30.0)
        report = load.report()
        assert report.failures == {}
        made = report.completed + len(report.sessions)
        for name in (
            "haproxy_frontend_sessions_total",
            "haproxy_server_sessions_total",
            "appliance_connect_duration_seconds_count",
        ):
            wait_until(
                lambda name=name: _grown(site, before, name) == made,
                what=f"{name} grew by the {made} connections of the clients",
            )
    restarts = "appliance_program_restarts_total"
    assert _grown(site, before, restarts) == _RELOADS
    assert _grown(site, before, "appliance_reloads_total", result="done") == _RELOADS
    watch.look()


@pytest.mark.slow("a whole appliance and its readers")
def test_page_and_counters_outlive_a_killed_supervisord():
    """Without it they are told on; the next start takes over, and its counters go on from there."""
    with stats_site(workers=2) as site:
        appliance = site.cluster.appliance
        _ask(site.cluster.port, 5)
        site.wait_for("haproxy_frontend_sessions_total", 5, proxy="kube-api")
        watch, former = Watch(site), appliance.program_pid("stats")
        kill(appliance.pid)
        watch.look()
        assert "HAProxy version" in site.page("/haproxy_stats")
        _ask(site.cluster.port, 5)
        site.wait_for("haproxy_frontend_sessions_total", 10, proxy="kube-api")
        watch.look()
        appliance.start()
        wait_until(lambda: appliance.program_pid("stats") not in {None, former}, what="another stats answers")
        wait_until(
            lambda: _answers(site) and site.value("appliance_ok") == 1, what="everything runs", timeout=30.0
        )
        watch.look()
        _ask(site.cluster.port, 5)
        site.wait_for("haproxy_frontend_sessions_total", 15, proxy="kube-api")
        watch.look()


@pytest.mark.slow("a whole appliance and its readers")
def test_counters_outlive_an_upgrade(tmp_path: Path):
    """Another release takes over, and goes on with all that the former one has counted."""
    with stats_site(workers=2) as site:
        made = site.cluster.appliance
        _ask(site.cluster.port, 5)
        site.wait_for("haproxy_frontend_sessions_total", 5, proxy="kube-api")
        watch, former = Watch(site), made.process
        made.process = Release(tmp_path / "newer", "9.9.9").run(made.paths, made.log_file)
        made.wait_for_event("appliance-taken-over", timeout=60.0)
        assert former.wait(60) == 0
        wait_until(lambda: _answers(site), what="stats answers", timeout=30.0)
        watch.look()
        _ask(site.cluster.port, 5)
        site.wait_for("haproxy_frontend_sessions_total", 10, proxy="kube-api")
        watch.look()


def _answers(site: StatsSite) -> bool:
    """Return whether stats can be asked; it was killed perhaps."""
    with contextlib.suppress(OSError):
        return bool(site.counters())
    return False


def _accepting(site: StatsSite) -> set[int]:
    return {each.pid for each in site.cluster.appliance.accepting()}


@pytest.mark.slow("a whole appliance and its readers")
def test_a_worker_that_dies_with_its_master_is_counted(site: StatsSite):
    """The next master adds what is left on the board, once."""
    appliance = site.cluster.appliance
    _ask(site.cluster.port, 5)
    watch = Watch(site)
    victims = [each.pid for each in appliance.accepting()]
    master = appliance.kill("proxy-api")
    for pid in victims:
        kill(pid)
    appliance.wait_for_restart("proxy-api", master)
    wait_until(appliance.accepting, what="workers accept again")
    watch.look()
    wait_until(  # a generation may still follow the one that was killed
        lambda: len(list(appliance.paths.runtime.glob("worker-*.board"))) == len(appliance.workers()),
        what="each board is a worker's",
    )
    sums = ended_workers.load(appliance.paths, "proxy-api")
    assert sums.workers == len(set(sums.recent))


@pytest.mark.slow("a whole appliance and its readers")
def test_a_damaged_file_of_sums_is_set_aside(site: StatsSite):
    """Counting begins anew, and somebody is told."""
    appliance = site.cluster.appliance
    path = appliance.paths.ended_workers("proxy-api")
    path.write_text("{damaged")
    kill(wait_until(appliance.accepting, what="a worker accepts")[0].pid)
    wait_until(
        lambda: ended_workers.load(appliance.paths, "proxy-api").workers == 1, what="it is counted anew"
    )
    assert any(path.name in each for each in appliance.status()["set_aside"])  # type: ignore[union-attr]  # a list
    site.wait_for("appliance_files_set_aside", 1.0)
    for each in path.parent.glob(f"{path.name}.damaged*"):
        each.unlink()
