"""The metrics of HAProxy's exporter."""

import pytest

from appliance.core.haproxy.statistics import Row
from appliance.core.metrics.haproxy import haproxy_metrics, state_of
from appliance.wire.exposition import Metric

pytestmark = pytest.mark.pure

ROWS: list[Row] = [
    {"pxname": "api", "svname": "FRONTEND", "type": 0, "stot": 9, "status": "OPEN", "dcon": 2},
    {
        "pxname": "masters", "svname": "m0", "type": 2, "stot": 9, "status": "UP 1/3",
        "check_status": "L7STS", "check_duration": 12, "ctime": 4,
    },
    {"pxname": "masters", "svname": "m1", "type": 2, "stot": 0, "status": "no check"},
    {"pxname": "masters", "svname": "BACKEND", "type": 1, "stot": 9, "status": "UP", "act": 2},
]  # fmt: skip


@pytest.fixture(scope="module")
def metrics() -> dict[str, Metric]:
    """Return the metrics of two servers by their names."""
    return {each.name: each for each in haproxy_metrics(ROWS)}


def test_labels_and_values(metrics: dict[str, Metric]):
    """Frontends and backends are told by `proxy`, servers by `server` too; what a row lacks is absent."""
    assert metrics["haproxy_frontend_sessions_total"].samples == [('{proxy="api"}', 9)]
    assert metrics["haproxy_backend_active_servers"].samples == [('{proxy="masters"}', 2)]
    assert metrics["haproxy_server_sessions_total"].samples == [
        ('{proxy="masters",server="m0"}', 9),
        ('{proxy="masters",server="m1"}', 0),
    ]
    assert metrics["haproxy_server_check_up_down_total"].samples == []


def test_times_are_seconds(metrics: dict[str, Metric]):
    """Statistics have milliseconds."""
    given = '{proxy="masters",server="m0"}'
    assert metrics["haproxy_server_check_duration_seconds"].samples == [(given, pytest.approx(0.012))]
    assert metrics["haproxy_server_connect_time_average_seconds"].samples == [(given, pytest.approx(0.004))]


@pytest.mark.parametrize(
    ("name", "where", "states"),
    [
        ("haproxy_frontend_status", 'proxy="api"', {"UP": 1, "DOWN": 0}),
        ("haproxy_backend_status", 'proxy="masters"', {"UP": 1, "DOWN": 0}),
        (
            "haproxy_server_status",
            'proxy="masters",server="m0"',
            {"UP": 1, "DOWN": 0, "MAINT": 0, "DRAIN": 0, "NOLB": 0},
        ),
    ],
)
def test_one_state_of_several(metrics: dict[str, Metric], name: str, where: str, states: dict[str, int]):
    """Each state has a sample, and the one that is has 1."""
    found = dict(metrics[name].samples)
    assert {state: found[f'{{{where},state="{state}"}}'] for state in states} == states


def test_results_of_checks(metrics: dict[str, Metric]):
    """A server without checks has no result."""
    ones = [given for given, value in metrics["haproxy_server_check_status"].samples if value]
    assert ones == ['{proxy="masters",server="m0",state="L7STS"}']
    assert not any("m1" in given for given, _ in metrics["haproxy_server_check_status"].samples)


def test_dashboards_find_their_lists(metrics: dict[str, Metric]):
    """Dashboard 12693 takes its list of codes from HTTP responses: zeros keep it from being empty."""
    for kind, count in (("frontend", 6), ("backend", 6), ("server", 12)):
        samples = metrics[f"haproxy_{kind}_http_responses_total"].samples
        assert [value for _, value in samples] == [0] * count
    assert '{proxy="api",code="5xx"}' in dict(metrics["haproxy_frontend_http_responses_total"].samples)


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("OPEN", "UP"), ("STOP", "DOWN"), ("UP", "UP"), ("UP 1/3", "UP"), ("DOWN 1/2", "DOWN"),
        ("no check", "UP"), ("MAINT", "MAINT"), ("DRAIN", "DRAIN"),
    ],
)  # fmt: skip
def test_states(status: str, state: str):
    """On its way down a server is still up, as for HAProxy's exporter."""
    assert state_of(status) == state
