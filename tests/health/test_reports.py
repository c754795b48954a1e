"""What is logged of servers, once for each change, and of what hinders their checks."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
from support.health.health import QUICK, Health, all_checked, newer, of, server
from support.peers.backend import Backend
from support.peers.nginx import nginx
from support.processes.waiting import wait_until
from support.values import certificates, snapshots

from appliance.model.check_results import CheckResult
from appliance.model.server_states import HealthVerdict

pytestmark = pytest.mark.programs


def test_a_change_of_state_is_logged_once_with_its_result(health: Health, backend: Backend):
    """A /readyz that turns 500 and back gives two lines, each with the result that caused it."""
    health.accept(of([server("master-0", backend), server("other", backend, check=None)]))
    health.start()
    health.wait_for("master-0", HealthVerdict.UP)
    backend.ready(500)
    down = health.wait_for("master-0", HealthVerdict.DOWN)
    assert (down.result, down.status, down.streak >= 2) == (CheckResult.L7STS, 500, True)
    backend.ready(200)
    health.wait_for("master-0", HealthVerdict.UP)
    events = health.events("server-up", "server-down")
    assert [event["event"] for event in events] == ["server-up", "server-down", "server-up"]
    facts = events[1]
    assert (facts["pool"], facts["server"], facts["result"], facts["status"]) == (
        "masters",
        "master-0",
        "L7STS",
        500,
    )
    assert (facts["level"], facts["streak"], facts["up"], facts["servers"]) == ("warning", 2, 1, 2)
    assert facts["program"] == "health"
    assert "duration" in facts
    assert "detail" in facts
    assert health.events("check") == []


def test_debug_shows_every_check(health: Health, backend: Backend):
    """At level debug a check that changes nothing has its line too."""
    health.accept(of([server("master-0", backend)], level="debug"))
    health.start()
    wait_until(lambda: len(health.events("check")) > 2, what="checks are logged")
    assert health.events("check")[0]["result"] == "L7OK"


@pytest.mark.needs("nginx")
def test_a_ca_file_that_is_being_replaced_takes_no_server_down(health: Health, tmp_path: Path):
    """While the file is gone its last content is used; the log says so once, and when it is back."""
    issued = certificates.issue(tmp_path, "localhost")
    content = issued.authority.read_bytes()
    with nginx(certificates=issued) as master:
        https = replace(QUICK, type=snapshots.check("https").type, verify=str(issued.authority), fall=1)
        health.accept(of([server(f"master-{index}", master.port, https) for index in range(3)]))
        health.start()
        wait_until(lambda: all_checked(health, 3), what="all are checked")
        issued.authority.unlink()
        wait_until(lambda: health.events("ca-file-kept"), what="the log says so")
        since = time.time()
        wait_until(lambda: all_checked(health, 3, since=since), what="all are checked without the file")
        assert not health.propose(of([server("a", master.port, https)], number=2)).ok
        issued.authority.write_bytes(content)
        wait_until(lambda: health.events("ca-file-readable"), what="the log says that it is back")
        assert health.events("server-down", "check-impossible") == []
        assert len(health.events("ca-file-kept")) == 1


def test_a_check_without_its_ca_file_is_no_verdict(health: Health, backend: Backend, tmp_path: Path):
    """A CA file that is missing from the start leaves servers as they are, and is logged once."""
    check = replace(QUICK, type=snapshots.check("https").type, verify=str(tmp_path / "ca.pem"))
    health.accept(of([server("a", backend, check), server("b", backend, check), server("c", backend)]))
    health.start()
    wait_until(lambda: health.events("check-impossible"), what="the log says so")
    sure = health.wait_for("c", HealthVerdict.UP)
    wait_until(lambda: newer(health, "c", sure.checked_at + 0.5), what="some rounds of checks")
    assert [health.wait_for(name, HealthVerdict.UNKNOWN).failed for name in "ab"] == [0, 0]
    assert len(health.events("check-impossible")) == 1
