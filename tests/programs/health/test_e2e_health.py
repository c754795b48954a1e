"""A master whose /readyz turns 500, through the whole appliance: connections, sessions, coming back."""

import pytest
from support.load.load import Load, Report
from support.peers.cluster import Cluster, cluster
from support.processes.waiting import wait_until

pytestmark = pytest.mark.programs

_SESSIONS = 60
_SICK = "master-1"


@pytest.mark.slow("a whole appliance and real checks")
@pytest.mark.parametrize("on_down", ["close-sessions", "keep", "auto"])
def test_a_server_that_is_not_ready_gets_no_new_connection(on_down: str):
    """After interval times fall it gets none, and its sessions in every generation go by `on_down`.

    It answers its check, badly: with auto they stay.
    """
    with (
        cluster(workers=1, drain=60.0, pool={"on_down": on_down}) as made,
        Load(port=made.port, sessions=_SESSIONS, rate=100) as load,
    ):
        load.wait_for_sessions()
        assert made.appliance.reload(made.config(revision=1))["ok"] is True
        load.open_sessions(_SESSIONS)
        load.wait_for_sessions(2 * _SESSIONS)
        held = {worker.phase: worker.sessions for worker in made.appliance.workers()}
        assert held["draining"] >= _SESSIONS

        made.master(_SICK).ready(500)
        made.appliance.wait_for_event("server-down", lambda event: event["server"] == _SICK)
        _assert_passed_over(load, made)

        of_sick = [session for session in load.report().sessions if session.server == _SICK]
        assert len(of_sick) == 2 * _SESSIONS // 3
        if on_down == "close-sessions":
            wait_until(lambda: _on_sick(load.report()) == 0, what="its sessions are closed")
        report = load.report()
        assert len(report.ended) == (len(of_sick) if on_down == "close-sessions" else 0)
        assert {session.server for session in report.ended} <= {_SICK}
        # Short connections that were under way there are sessions of the server, too.
        assert set(report.failures) <= ({"reset"} if on_down == "close-sessions" else set())


@pytest.mark.slow("a whole appliance and real checks")
def test_a_server_that_comes_back_gets_its_share_over_slow_start():
    """Its share grows from little to that of the others."""
    with cluster(workers=1, pool={"slow_start": "8s"}) as made, Load(port=made.port, rate=150) as load:
        made.master(_SICK).ready(500)
        made.appliance.wait_for_event("server-down", lambda event: event["server"] == _SICK)
        ups = len(_ups(made))
        made.master(_SICK).ready(200)
        wait_until(lambda: len(_ups(made)) > ups, what="it is up again")
        early = _share(load, 150)
        wait_until(lambda: _share(load, 150) > 0.28, what="it has its share", timeout=30.0)
        assert early < 0.2
        assert load.report().failures == {}


@pytest.mark.slow("a whole appliance and real checks")
def test_without_a_server_connections_fail_and_the_monitor_says_so():
    """With every server down a client is turned away, not left waiting; one that comes back serves again."""
    with (
        cluster(masters=1, workers=1, pool={"on_down": "close-sessions"}) as made,
        Load(port=made.port, rate=30) as load,
    ):
        made.master("master-0").ready(500)
        made.appliance.wait_for_event("server-down")
        wait_until(lambda: load.report().failures, what="connections fail")
        assert set(load.report().failures) <= {"reset", "end"}
        made.master("master-0").ready(200)
        before = load.report().completed
        wait_until(lambda: load.report().completed > before + 20, what="connections are served again")


@pytest.mark.promise("survives", "a server")
def test_a_dead_master_costs_no_request():
    """Connections that meet a server which just died go to another one."""
    with (
        cluster(workers=1, pool={"on_down": "close-sessions"}) as made,
        Load(port=made.port, rate=100) as load,
    ):
        wait_until(lambda: load.report().completed > 50, what="load runs")
        load.set_rate(0)
        wait_until(lambda: load.report().under_way == 0, what="nothing is under way")
        made.master(_SICK).stop()
        load.set_rate(100)
        made.appliance.wait_for_event("server-down", lambda event: event["server"] == _SICK)
        before = load.report().completed
        wait_until(lambda: load.report().completed > before + 50, what="50 connections more")
        assert load.report().failures == {}


@pytest.mark.slow("a whole appliance and real checks")
def test_the_operators_maint_and_drain_outlive_reload_and_restart():
    """A server in drain gets nothing new, before and after a reload and a restart of the prober."""
    with cluster(workers=1) as made, Load(port=made.port, sessions=30, rate=100) as load:
        load.wait_for_sessions()
        made.appliance.command("drain", f"masters/{_SICK}")
        _assert_passed_over(load, made)
        assert made.appliance.reload(made.config(revision=1))["ok"] is True
        killed = made.appliance.kill("health")
        made.appliance.wait_for_restart("health", killed)
        _assert_passed_over(load, made)
        assert load.report().ended == []
        made.appliance.command("ready", f"masters/{_SICK}")
        before = load.report().servers[_SICK]
        wait_until(lambda: load.report().servers[_SICK] > before, what="it is used again")
        assert load.report().failures == {}


def _assert_passed_over(load: Load, made: Cluster) -> None:
    """Wait until the workers have seen it, then 100 connections pass and none goes there."""

    def passed_over() -> bool:
        before = load.report()
        wait_until(lambda: load.report().completed >= before.completed + 100, what="100 connections more")
        return load.report().servers.get(_SICK, 0) == before.servers.get(_SICK, 0)

    assert made.appliance.is_running()
    wait_until(passed_over, what=f"{_SICK} gets no new connection", timeout=20.0)


def _share(load: Load, connections: int) -> float:
    """Return the part of the next connections that the server gets."""
    before = load.report()
    wait_until(lambda: load.report().completed >= before.completed + connections, what="more connections")
    after = load.report()
    got = after.servers.get(_SICK, 0) - before.servers.get(_SICK, 0)
    return got / (after.completed - before.completed)


def _on_sick(report: Report) -> int:
    return sum(session.server == _SICK for session in report.living)


def _ups(made: Cluster) -> list[object]:
    return [event for event in made.appliance.events("server-up") if event["server"] == _SICK]
