"""`check: {reuse: true}` in the program: when a kept connection is used, and when it goes."""

from dataclasses import replace

import pytest
from support.health.health import QUICK, SLOW, Health, connects_failed, of, server
from support.network.ports import free_port
from support.peers.haproxy import HAProxy
from support.processes.waiting import wait_until

from appliance.model.server_states import HealthVerdict

pytestmark = [pytest.mark.programs, pytest.mark.needs("haproxy")]


def haproxy_cfg(port: int) -> str:
    """Return the file of an HAProxy that answers itself."""
    return f"""
global
  stats socket {{control}}
defaults
  mode http
  timeout client 1m
  timeout http-keep-alive 1m
frontend asked
  bind 127.0.0.1:{port}
  http-request return status 200
"""


def counted(haproxy: HAProxy) -> tuple[int, int, int]:
    """Return the connections and requests until now, and the connections that are open."""
    (row,) = (row for row in haproxy.rows() if row["svname"] == "FRONTEND")
    return int(row["conn_tot"]), int(row["req_tot"]), int(row["scur"])


def one_for_ten(connections: int, requests: int, current: int) -> bool:
    """Return whether ten requests had one connection each, and one is open; not while one is replaced."""
    return (connections, current) == (-(-requests // 10), 1)


def test_reused_checks_are_counted_and_logged(health: Health):
    """Ten checks of a connection are nine that spared one; the board has their sum, the log each."""
    port = free_port()
    with HAProxy(haproxy_cfg(port)) as haproxy:
        health.accept(of([server("master-0", port, replace(QUICK, reuse=True))], level="debug"))
        health.start()
        record = wait_until(
            lambda: (found := health.server("master-0")) and found.reused > 12 and found,
            what="more than twelve checks were made on kept connections",
        )
        wait_until(lambda: one_for_ten(*counted(haproxy)), what="a tenth as many connections, one open")

    assert record.verdict is HealthVerdict.UP
    assert {line["reused"] for line in health.events("check")} == {True, False}


def test_a_client_that_cannot_connect_has_a_new_connection_made(health: Health):
    """The kept one proves nothing then; a server in maint is left alone, and an ended program keeps none."""
    port = free_port()
    with HAProxy(haproxy_cfg(port)) as haproxy:
        health.accept(of([server("master-0", port, replace(SLOW, reuse=True))]))
        health.start()
        health.wait_for("master-0", HealthVerdict.UP)
        connects_failed(health, "master-0")
        wait_until(
            lambda: counted(haproxy) == (2, 2, 1), what="a second connection in the place of the first"
        )
        assert health.ask("set-state", pool="masters", server="master-0", state="maint").ok
        wait_until(lambda: counted(haproxy) == (2, 2, 0), what="the connection is closed")
        assert health.ask("set-state", pool="masters", server="master-0", state="ready").ok
        wait_until(lambda: counted(haproxy) == (3, 3, 1), what="a new connection")
        health.kill()
        wait_until(lambda: counted(haproxy) == (3, 3, 0), what="the connection ends with the program")
