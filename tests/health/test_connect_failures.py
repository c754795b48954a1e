"""Workers whose clients cannot connect have a server checked at once."""

import socket
from dataclasses import replace

import pytest
from support.health.health import SLOW, Health, checks, connects_failed, of, server
from support.peers.backend import Backend
from support.processes.processes import end
from support.processes.waiting import wait_until

from appliance.model.check_results import CheckResult
from appliance.model.server_states import HealthVerdict
from appliance.wire.lines import connect_failure

pytestmark = pytest.mark.programs


@pytest.mark.promise("docs/concepts.md", "a server that clients cannot connect to is checked at once")
def test_a_server_that_clients_cannot_connect_to_is_checked_at_once(health: Health, backend: Backend):
    """Its next check is a minute away; a datagram of a worker brings the verdict now."""
    health.accept(of([server("master-0", backend, replace(SLOW, fall=1))]))
    health.start()
    health.wait_for("master-0", HealthVerdict.UP)
    backend.ready(500)
    connects_failed(health, "master-0")
    assert health.wait_for("master-0", HealthVerdict.DOWN).result is CheckResult.L7STS


def test_failed_connects_to_a_good_server_change_nothing(health: Health, backend: Backend):
    """However often clients fail there is one check for each fast_interval, and it stays up."""
    health.accept(of([server("master-0", backend, SLOW), server("other", backend)], level="debug"))
    health.start()
    health.wait_for("master-0", HealthVerdict.UP)
    connects_failed(health, "master-0", times=1000)
    wait_until(lambda: checks(health, "master-0") == 2, what="it is checked once more")
    connects_failed(health, "master-0", times=1000)
    before = checks(health, "other")
    wait_until(lambda: checks(health, "other") > before + 5, what="others are checked as ever")
    assert checks(health, "master-0") == 2
    record = health.server("master-0")
    assert record is not None
    assert (record.verdict, record.failed) == (HealthVerdict.UP, 0)


def test_any_other_datagram_is_passed_over(health: Health, backend: Backend):
    """Garbage, a long datagram and servers that nobody knows: the next good one is heard."""
    health.accept(of([server("master-0", backend, replace(SLOW, fall=1))]))
    health.start()
    health.wait_for("master-0", HealthVerdict.UP)
    backend.ready(500)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
        for datagram in (b"", b"\xff", b"[1]", b"x" * 5000, connect_failure.encode("masters", "nobody")):
            stranger.sendto(datagram, str(health.paths.health_connect_failures))
    connects_failed(health, "master-0")
    assert health.wait_for("master-0", HealthVerdict.DOWN).result is CheckResult.L7STS
    assert "Traceback" not in health.log()


def test_the_socket_for_failed_connects_is_made_again(health: Health, backend: Backend):
    """Somebody who cleans up the runtime directory does not make health deaf for good."""
    path = health.paths.health_connect_failures
    health.accept(of([server("master-0", backend, replace(SLOW, fall=1))]))
    health.start()
    health.wait_for("master-0", HealthVerdict.UP)
    assert path.stat().st_mode & 0o777 == 0o600
    path.unlink()
    wait_until(path.exists, what="the socket is there again")
    backend.ready(500)
    connects_failed(health, "master-0")
    health.wait_for("master-0", HealthVerdict.DOWN)
    end(health.process)
    assert not path.exists()
