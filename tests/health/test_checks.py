"""What the board and the log say of servers as their checks go on."""

import contextlib
import signal
import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest
from support.health.health import (
    QUICK,
    SLOW,
    Health,
    all_checked,
    of,
    server,
)
from support.network.ports import free_port
from support.peers.backend import Backend
from support.peers.hostile import SECURE, hostile
from support.peers.nginx import nginx
from support.processes.waiting import wait_until
from support.values import certificates, snapshots

from appliance.model.check_results import CheckResult
from appliance.model.server_states import HealthVerdict
from appliance.model.snapshot.pools import CheckInit
from appliance.net.boards.board_reader import BoardReader

pytestmark = pytest.mark.programs


def test_servers_that_share_a_name_never_share_an_address(health: Health):
    """Of a name with one address only one server is up, and the other says why it is not."""
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listener:
        port = listener.getsockname()[1]
        check = snapshots.check("tcp", interval=0.1)
        health.accept(of([server(name, port, check, host="localhost") for name in ("a", "b")]))
        health.start()
        up, down = health.wait_for("a", HealthVerdict.UP), health.wait_for("b", HealthVerdict.DOWN)
    assert (up.host in {"127.0.0.1", "::1"}, down.host) == (True, "")
    assert down.detail == "no address: localhost has fewer addresses than servers"


@pytest.mark.promise("program", "health")
def test_servers_are_known_soon_after_the_start(health: Health, backend: Backend):
    """One check decides on each: up with the status and address, down with the reason."""
    dead = free_port()
    health.accept(
        of([server("good", backend), server("dead", dead), server("free", dead, check=None)], number=7)
    )
    health.start()
    good, gone = health.wait_for("good", HealthVerdict.UP), health.wait_for("dead", HealthVerdict.DOWN)
    assert (good.result, good.status, good.host, good.port) == (
        CheckResult.L7OK,
        200,
        "127.0.0.1",
        backend.port,
    )
    assert (gone.result, gone.detail) == (CheckResult.L4CON, "connection refused")
    assert health.wait_for("free", HealthVerdict.UP).result is CheckResult.UNCHECKED
    board = health.board()
    assert board is not None
    assert (board.snapshot, board.pid) == (7, health.process.pid)
    status = health.ask("status").values
    assert (status["program"], status["pid"], status["snapshot"]) == ("health", health.process.pid, 7)
    assert status["servers"] == {"up": 2, "down": 1, "drain": 0, "maint": 0, "checking": 0}


def test_only_changes_count_as_changes(health: Health, backend: Backend):
    """Fresh results move the board's sequence, and `changes` only with a verdict."""
    health.accept(of([server("master-0", backend)]))
    health.start()
    health.wait_for("master-0", HealthVerdict.UP)
    with BoardReader(health.paths.health_board) as board:
        changes, sequence = board.changes, board.sequence
        wait_until(lambda: board.sequence > sequence + 2, what="fresh results are published")
        assert board.changes == changes
        backend.ready(500)
        wait_until(lambda: board.changes == changes + 1, what="the verdict is published")


def test_slow_start_ramps_theweight_on_the_board(health: Health, backend: Backend):
    """A server that comes back shows a small weight that grows to its own."""
    backend.ready(500)
    health.accept(of([server("master-0", backend, weight=100)], slow_start=1.0))
    health.start()
    health.wait_for("master-0", HealthVerdict.DOWN)
    backend.ready(200)
    first = health.wait_for("master-0", HealthVerdict.UP).weight
    assert 0 < first < 100
    weights = [first]

    def whole() -> bool:
        record = health.server("master-0")
        weights.append(record.weight if record else 0.0)
        return weights[-1] == 100.0

    wait_until(whole, what="the weight is whole")
    assert weights == sorted(weights)
    assert len(set(weights)) > 3


def test_first_checks_of_many_servers_are_spread(health: Health, backend: Backend):
    """Three hundred servers are not asked in one instant, but over a second or more."""
    health.accept(of([server(f"server-{index}", backend, SLOW) for index in range(300)]))
    health.start()
    wait_until(lambda: all_checked(health, 300), what="all are checked")
    board = health.board()
    assert board is not None
    moments = [each.checked_at for each in board.servers]
    assert max(moments) - min(moments) > 0.5


@pytest.mark.slow("waits while a program is stopped")
@pytest.mark.needs("nginx")
def test_a_program_that_was_stopped_blames_no_server(health: Health, tmp_path: Path):
    """Checks that ran out of time because this machine was busy have not failed."""
    with nginx(certificates=certificates.issue(tmp_path, "localhost")) as master:
        https = replace(QUICK, type=snapshots.check("https").type, timeout=6.0, fall=1)
        health.accept(
            of([server(f"master-{index}", master.port, https) for index in range(20)], level="debug")
        )
        health.start()
        wait_until(lambda: all_checked(health, 20), what="all are checked")
        health.process.send_signal(signal.SIGSTOP)
        time.sleep(6.5)  # longer than a check may take: that is the case
        health.process.send_signal(signal.SIGCONT)
        since = time.time()
        wait_until(lambda: all_checked(health, 20, since=since), what="all are checked anew")
        failed = [event for event in health.events("check", "server-down") if event["result"] != "L7OK"]
        assert failed == []


def test_presumed_states_are_presumed_until_the_first_check(health: Health, backend: Backend):
    """With `init` up or down there is a verdict before the first check, which alone corrects it."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        late = replace(SLOW, timeout=60.0, port=silent.getsockname()[1])
        health.accept(
            of(
                [
                    server("presumed-up", 1, replace(late, init=CheckInit.UP)),
                    server("presumed-down", 1, replace(late, init=CheckInit.DOWN)),
                    server("up", free_port(), replace(SLOW, init=CheckInit.UP)),
                    server("down", backend, replace(SLOW, init=CheckInit.DOWN)),
                ]
            )
        )
        health.start()
        assert health.wait_for("up", HealthVerdict.DOWN, by=1).streak == 1
        assert health.wait_for("down", HealthVerdict.UP).streak == 1
        assert health.wait_for("presumed-up", HealthVerdict.UP).result is CheckResult.UNCHECKED
        assert health.wait_for("presumed-down", HealthVerdict.DOWN).result is CheckResult.UNCHECKED
        # While the silent one is still there: its end would be the answer to a check.
        said = health.events("server-up", "server-down")
    events = sorted((event["server"], event["event"]) for event in said)
    assert events == [("down", "server-up"), ("up", "server-down")]


def test_a_name_is_resolved_for_the_workers(health: Health, backend: Backend):
    """A server with a name is checked at the address it stands for, and the board tells that address."""
    dead = snapshots.server("nowhere", host="nowhere.invalid", port=1, check=QUICK)
    health.accept(of([server("master-0", backend, host="localhost"), dead]))
    health.start()
    assert health.wait_for("master-0", HealthVerdict.UP).host in {"127.0.0.1", "::1"}
    nowhere = health.wait_for("nowhere", HealthVerdict.DOWN)
    assert nowhere.host == ""
    assert nowhere.detail.startswith("name not resolved")
    unresolved = health.ask("status").values["unresolved"]
    assert isinstance(unresolved, dict)
    assert list(unresolved) == ["nowhere.invalid"]


def test_a_new_server_of_a_known_name_has_its_address(health: Health, backend: Backend):
    """A server that a reload adds is told the address that another port's server of that name has."""
    check = replace(QUICK, address="127.0.0.1")  # localhost may be ::1
    first = server("a", backend, check, host="localhost")
    health.accept(of([first]))
    health.start()
    wait_until(lambda: getattr(health.server("a"), "host", ""), what="the name is resolved")
    other = server("b", free_port(), replace(check, port=backend.port), host="localhost")
    health.apply(of([first, other], number=2))
    health.wait_for("b", HealthVerdict.UP)
    a = health.server("a")
    assert a is not None
    wait_until(lambda: getattr(health.server("b"), "host", "") == a.host, what="b has the address of a")


def test_checks_may_go_elsewhere_than_sessions(health: Health, backend: Backend):
    """With `port` and `address` of the check, the server's own port is not touched."""
    check = replace(QUICK, port=backend.port, address="127.0.0.2")
    health.accept(of([server("router", free_port(), check)]))
    health.start()
    assert health.wait_for("router", HealthVerdict.UP).host == "127.0.0.1"


@pytest.mark.needs("nginx")
def test_masters_with_tls_are_checked_as_openshift_does(health: Health, tmp_path: Path):
    """An https check of nginx passes unverified and with its CA, and fails with another one."""
    ours = certificates.issue(tmp_path, "localhost")
    (tmp_path / "other").mkdir()
    others = certificates.issue(tmp_path / "other", "localhost")
    with nginx(certificates=ours) as master:
        https = replace(QUICK, type=snapshots.check("https").type)
        health.accept(
            of(
                [
                    server("unverified", master.port, https),
                    server("ours", master.port, replace(https, verify=str(ours.authority), sni="localhost")),
                    server("others", master.port, replace(https, verify=str(others.authority))),
                ]
            )
        )
        health.start()
        assert health.wait_for("unverified", HealthVerdict.UP).result is CheckResult.L7OK
        assert health.wait_for("ours", HealthVerdict.UP).result is CheckResult.L7OK
        assert health.wait_for("others", HealthVerdict.DOWN).result is CheckResult.L6RSP


def test_targets_that_never_stop_talking_starve_no_other_check(
    health: Health, backend: Backend, tmp_path: Path
):
    """A neighbour's death is found in its usual time while health checks servers of the worst kind."""
    files = certificates.issue(tmp_path, "127.0.0.1")
    secure = snapshots.check("https", interval=0.1, fast_interval=0.05, down_interval=0.1, timeout=5.0)
    with contextlib.ExitStack() as stack:
        ports = {kind: stack.enter_context(hostile(kind, files)) for kind in SECURE}
        bad = [server(kind, port, secure) for kind, port in ports.items()]
        health.accept(of([*bad, server("neighbour", backend)]))
        health.start()
        health.wait_for("neighbour", HealthVerdict.UP)
        for kind in ports:
            health.wait_for(kind, HealthVerdict.DOWN, by=3)
        backend.stop()
        stopped = time.monotonic()
        health.wait_for("neighbour", HealthVerdict.DOWN)
        # Two checks 50 ms apart; a handshake that keeps the loop for itself takes longer than its time-out.
        assert time.monotonic() - stopped < secure.timeout
