"""What is shipped for monitoring, with a real Prometheus: rules, and a dashboard of a live appliance."""

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme
import yaml
from support.discovery.kube_api import NODES, KubeApi, KubeCluster, credentials, node
from support.load.load import Load
from support.processes.waiting import wait_until
from support.run import tools
from support.stats.prometheus import Prometheus, prometheus
from support.stats.stats_site import StatsSite, stats_site

SHIPPED = Path(__file__).parents[3] / "image" / "monitoring"
RULES = SHIPPED / "rules.yaml"
VARIABLES = {"$instance": ".*", "$pool": ".*", "$__rate_interval": "20s", "${datasource}": "x"}

pytestmark = [pytest.mark.kernel, pytest.mark.needs("prometheus", "promtool", root=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """An appliance with all that is shown, under load, and the Prometheus that watches it."""

    site: StatsSite
    prometheus: Prometheus


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """Run an appliance with a virtual IP and discovery, clients, and a Prometheus."""
    directory = tmp_path_factory.mktemp("monitoring")
    authority, cluster = trustme.CA(), KubeCluster()
    cluster.put(NODES, node("master-9", "127.0.0.9"))
    with KubeApi(cluster, authority) as api, stats_site() as site:
        appliance, files = site.cluster.appliance, credentials(directory, authority)
        answer = appliance.reload(_config(site, files.section(api)))
        assert answer["ok"], answer
        wait_until(lambda: site.value("keepalived_vrrp_state", **_VIP) == 2, what="the virtual IP is held")
        with (
            Load(port=site.cluster.port, sessions=5, rate=20.0) as load,
            prometheus(directory, [f"127.0.0.1:{site.port}"], rules=RULES) as made,
        ):
            load.wait_for_sessions()
            yield Watched(site=site, prometheus=made)


_VIP = {"iname": "api", "intf": "lo", "vrid": "7", "ip_address": "192.0.2.7/32"}


def _config(site: StatsSite, kubernetes: dict[str, object]) -> dict[str, object]:
    config = site.config()
    pools = config["pools"]
    assert isinstance(pools, dict)
    found = {"check": {"type": "tcp"}, "servers": {"discover": {"nodes": "masters", "port": 6443}}}
    return {
        **config,
        "pools": {**pools, "found": found},
        "kubernetes": kubernetes,
        "virtual_ips": {"api": {"addresses": ["192.0.2.7/32"], "interface": "lo", "router_id": 7}},
    }


def _queries() -> Iterator[tuple[str, str]]:
    board = json.loads((SHIPPED / "dashboard.json").read_text())
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["definition"]).groups()
            yield f"variable {variable['name']}", f'{metric}{{{label}!=""}}'


@pytest.mark.slow("a whole appliance and a browser")
@pytest.mark.parametrize(("title", "expression"), list(_queries()))
def test_every_query_of_the_dashboard_has_data(watched: Watched, title: str, expression: str):
    """Each curve of each panel, and each list of names."""
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    wait_until(lambda: watched.prometheus.query(expression), what=f"{title}: {expression}", timeout=60.0)


_TCP_PANELS = (
    *("haproxy_process_start_time_seconds", "haproxy_process_current_connections"),
    *(
        f"haproxy_{kind}_{name}"
        for kind in ("frontend", "backend", "server")
        for name in (
            *("status", "http_responses_total", "current_sessions", "max_sessions", "limit_sessions"),
            *("sessions_total", "bytes_in_total", "bytes_out_total", "max_session_rate"),
        )
        if (kind, name) != ("server", "limit_sessions")  # only where a server has a limit
    ),
    *(
        f"haproxy_{kind}_{name}"
        for kind in ("backend", "server")
        for name in (
            *("current_queue", "max_queue", "connection_errors_total", "response_errors_total"),
            *("retry_warnings_total", "redispatch_warnings_total", "weight", "loadbalanced_total"),
            *("check_last_change_seconds", "client_aborts_total", "server_aborts_total"),
            *("check_up_down_total", "downtime_seconds_total", "response_time_average_seconds"),
            *("total_time_average_seconds", "max_queue_time_seconds", "max_connect_time_seconds"),
            *("max_response_time_seconds", "max_total_time_seconds"),
            *("queue_time_average_seconds", "connect_time_average_seconds", "connection_attempts_total"),
        )
    ),
    *("haproxy_backend_active_servers", "haproxy_backend_backup_servers"),
    *(
        f"haproxy_server_{name}"
        for name in (
            "check_failures_total",
            *("check_duration_seconds", "check_status"),
        )
    ),
    *("haproxy_frontend_connections_total", "haproxy_frontend_denied_connections_total"),
)
"""What the panels for TCP of "HAProxy 2 Full" (dashboard 12693) ask for, and its variables."""


def test_the_panels_of_haproxys_dashboard_have_data(watched: Watched):
    """Each of its metrics has samples, and each counter a rate."""
    for name in _TCP_PANELS:
        asked = f"rate({name}[20s])" if name.endswith("_total") else name
        wait_until(lambda asked=asked: watched.prometheus.query(asked), what=asked, timeout=60.0)


def test_prometheus_gets_what_it_asks_for(watched: Watched):
    """It asks for OpenMetrics, and has no complaint; nothing of a healthy appliance is an alert."""
    [target] = watched.prometheus.targets()
    assert (target["health"], target["lastError"]) == ("up", "")
    assert watched.prometheus.query('scrape_samples_scraped{job="appliance"} > 100')


def test_an_alert_comes_and_goes(watched: Watched):
    """A refused reload is told as long as it is the last one."""
    appliance = watched.site.cluster.appliance
    accepted = appliance.paths.config.read_text()
    appliance.paths.config.write_text("pools: 7\n")
    assert not appliance.reload()["ok"]
    wait_until(lambda: "ReloadRefused" in watched.prometheus.alerts(), what="the alert", timeout=60.0)
    appliance.paths.config.write_text(accepted)
    assert appliance.reload()["ok"]
    wait_until(lambda: "ReloadRefused" not in watched.prometheus.alerts(), what="its end", timeout=60.0)


def test_counters_of_vrrp_outlive_it(watched: Watched):
    """It is killed, and its counters go on; supervisord counts the restart."""
    site = watched.site
    appliance = site.cluster.appliance
    names = ("keepalived_advertisements_sent_total", "keepalived_become_master_total")
    labels = {key: value for key, value in _VIP.items() if key != "ip_address"}
    wait_until(lambda: (site.value(names[0], **labels) or 0) >= 3, what="some were sent")
    before = [site.value(name, **labels) for name in names]
    restarts = site.value("appliance_program_restarts_total", program="vrrp")
    appliance.wait_for_restart("vrrp", appliance.kill("vrrp"))
    for name, least in zip(names, before, strict=True):
        wait_until(lambda name=name: site.value(name, **labels) is not None, what=f"{name} is back")
        assert (site.value(name, **labels) or 0) >= (least or 0)
    assert restarts is not None
    site.wait_for("appliance_program_restarts_total", restarts + 1, program="vrrp")


@pytest.mark.slow("a whole appliance and a browser")
@pytest.mark.parametrize("program", ["discover", "vrrp"])
def test_page_and_metrics_while_a_program_is_killed(watched: Watched, program: str):
    """Each scrape is answered, no counter goes back, the restart is counted, its metrics come back."""
    site = watched.site
    own = {"discover": "appliance_discovery_age_seconds", "vrrp": "keepalived_vrrp_state"}[program]
    most = dict(site.counters())
    restarts = site.value("appliance_program_restarts_total", program=program)
    assert restarts is not None
    killed = site.cluster.appliance.kill(program)

    def is_back() -> bool:
        now = site.counters()
        back = {name: (most[name], value) for name, value in now.items() if value < most.get(name, 0)}
        assert back == {}
        most.update(now)
        assert "HAProxy version" in site.page("/haproxy_stats")
        counted = now.get(("appliance_program_restarts_total", frozenset({("program", program)})))
        return counted == restarts + 1 and any(name == own for name, _ in site.samples())

    wait_until(is_back, what=f"{program} was started again, and is shown", timeout=60.0)
    assert site.cluster.appliance.program_pid(program) != killed


@pytest.mark.slow("a whole appliance and a browser")
@pytest.mark.parametrize("command", [["check", "rules", str(RULES)], ["test", "rules", "rules-test.yaml"]])
def test_rules(command: list[str]):
    """Prometheus takes them, and each alert fires when it should and not before."""
    program = tools.path("promtool")
    assert program is not None
    done = subprocess.run(
        [program, *command], cwd=SHIPPED, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow("a whole appliance and a browser")
def test_each_alert_is_tested_and_says_what_to_do():
    """None is without a test in which it fires, or without a sentence for who is woken up by it."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    tested = re.findall(r'alertname="(\w+)"', (SHIPPED / "rules-test.yaml").read_text())
    for rule in (rule for group in groups for rule in group["rules"]):
        assert rule["alert"] in tested
        assert rule["annotations"]["action"].strip().endswith((".", "?"))
        assert rule["labels"]["severity"] in {"info", "warning", "critical"}
