"""The appliance as one HAProxy process."""

import pytest
from support.values import boards
from support.values.observations import NOW, observations

from appliance.core.haproxy.activity import Activity, Counted, ProxyKind
from appliance.core.haproxy.process import ProcessFigures, info_fields, process_figures, process_metrics
from appliance.core.status.assessment import assess
from appliance.core.status.observations import Observations
from appliance.wire.boards.ended_workers import EndedWorkers

pytestmark = pytest.mark.pure


def figures(found: Observations) -> ProcessFigures:
    """Return the figures, after a second in which ten connections came."""
    activity = Activity()
    place = (ProxyKind.FRONTEND, "frontend", "")
    for second, total in enumerate((0, 10)):
        activity.look({place: Counted(current=0, total=total)}, NOW + second)
    return process_figures(assess(found, NOW), found, activity, version="0.1.0", node="lb-0", pid=42)


def test_it_is_the_sum_of_all_workers():
    """Of ended ones too, whose frontends may have gone: the process started with the first of them."""
    worker = boards.worker(sessions=3, frontends=(boards.frontend_counters(current=3, total=10),))
    ended = EndedWorkers(since=50.0, workers=4, frontends=(boards.frontend_counters("", total=5),))
    found = figures(observations(workers=(worker,), ended={"proxy-api": ended}))

    assert (found.started_at, found.uptime, found.sessions, found.total) == (50.0, 150.0, 3, 15)
    assert (found.bytes_out, found.limit, found.listeners, found.rate) == (600, 1000, 1, 10)


def test_without_workers_it_has_just_started():
    """There is no moment before the first worker."""
    found = figures(observations(workers=(), ended={"proxy-api": EndedWorkers()}))
    assert (found.started_at, found.uptime, found.workers) == (NOW, 0.0, 0)
    assert info_fields(found)["Nbthread"] == 1


def test_what_agents_look_for():
    """Datadog's takes the first two numbers of the version, and compares times."""
    fields = info_fields(figures(observations()))
    major, minor = str(fields["Version"]).split(".")[:2]
    assert (int(major), int(minor)) == (2, 6)
    assert (fields["Name"], fields["Uptime"], fields["Uptime_sec"]) == ("HAProxy", "0d 0h01m40s", 100)
    assert (fields["Pid"], fields["node"], fields["SessRate"]) == (42, "lb-0", 10)


def test_the_metrics_are_the_same_figures():
    """Under the names of HAProxy's exporter."""
    found = figures(observations())
    values = {each.name: [value for _, value in each.samples] for each in process_metrics(found)}
    assert values["haproxy_process_start_time_seconds"] == [100]
    assert values["haproxy_process_current_session_rate"] == [10]
    assert all(len(each) == 1 for each in values.values())
