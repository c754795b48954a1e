"""What reload and operators ask of the program, and how it answers."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.health.health import SLOW, Health, admins, of, server, weight
from support.peers.backend import Backend
from support.processes.waiting import wait_until
from support.values import snapshots

from appliance.model.check_results import CheckResult
from appliance.model.server_states import AdminState, HealthVerdict

pytestmark = pytest.mark.programs


def test_slow_start_ramps_after_maint(health: Health):
    """An operator who gives a server back sees a small weight at first."""
    health.accept(of([server("master-0", 1, check=None, weight=100)], slow_start=60.0))
    health.start()
    assert health.wait_for("master-0", HealthVerdict.UP).weight == 100.0
    for state in ("maint", "ready"):
        assert health.ask("set-state", pool="masters", server="master-0", state=state).ok
    wait_until(lambda: admins(health) == {"master-0": AdminState.READY}, what="the board says ready")
    wait_until(lambda: weight(health, "master-0") < 100.0, what="the weight is small")


def test_a_server_in_maint_is_not_checked(health: Health):
    """Checks end with maint; a server that died meanwhile is found down before it gets traffic."""
    with Backend("mortal") as mortal:
        health.accept(of([server("master-0", mortal, SLOW)]))
        health.start()
        health.wait_for("master-0", HealthVerdict.UP)
        assert health.ask("set-state", pool="masters", server="master-0", state="maint").ok
        mortal.stop()
        board = health.board()
        assert board is not None
        assert health.ask("set-state", pool="masters", server="master-0", state="ready").ok
        record = health.wait_for("master-0", HealthVerdict.DOWN)
        assert (record.failed, record.result) == (1, CheckResult.L4CON)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"pool": "master", "server": "a", "state": "drain"}, "unknown pool 'master'; known: masters"),
        (
            {"pool": "masters", "server": "c", "state": "drain"},
            "unknown server masters/c; known in masters: a, b",
        ),
        (
            {"pool": "masters", "server": "a", "state": "off"},
            "unknown state 'off'; known: ready, drain, maint",
        ),
        ({"pool": "masters", "server": "a"}, "set-state: state: Expected `str`, got `null`"),
    ],
)
def test_a_mistyped_command_says_what_there_is(health: Health, values: dict[str, object], message: str):
    """Unknown pools, servers and states are answered with the known ones."""
    health.accept(of([server("a", 1, None), server("b", 1, None)]))
    health.start()
    answer = health.ask("set-state", **values)
    assert [problem.message for problem in answer.errors] == [message]


def test_a_new_configuration_keeps_what_stays(health: Health, backend: Backend):
    """Servers that stay keep their state; others appear, disappear, or begin anew at another address."""
    with Backend("another") as another:
        first = of([server("stays", backend, SLOW), server("goes", backend), server("moves", backend, SLOW)])
        health.accept(first)
        health.start()
        before = health.wait_for("stays", HealthVerdict.UP)
        moved = health.wait_for("moves", HealthVerdict.UP)
        second = of(
            [server("stays", backend, SLOW), server("moves", another, SLOW), server("comes", another)],
            number=2,
        )
        assert health.propose(second).values == {"changed": True, "generation": None}
        assert health.server("comes") is None
        assert health.ask("commit", snapshot=2).ok
        health.wait_for("comes", HealthVerdict.UP)
        assert health.server("goes") is None
        again = health.wait_for("moves", HealthVerdict.UP)
        assert (again.port, again.since > moved.since) == (another.port, True)
        stays = health.server("stays")
        assert stays is not None
        assert (stays.checked_at, stays.streak) == (pytest.approx(before.checked_at, abs=0.5), 1)
        assert health.propose(replace(second, number=3)).values["changed"] is False
        assert health.ask("commit", snapshot=3).ok
        wait_until(lambda: (board := health.board()) and board.snapshot == 3, what="the board says 3")


def test_commands_can_be_repeated(health: Health):
    """A second prepare, commit or abort of the same snapshot is harmless, and an aborted one is forgotten."""
    health.start()
    snapshot = of([server("a", 1, None)], number=5)
    assert health.propose(snapshot).ok
    assert health.propose(snapshot).ok
    assert health.ask("status").values["pending"] == 5
    assert health.ask("abort", snapshot=4).ok
    assert health.ask("status").values["pending"] == 5
    assert [health.ask("abort", snapshot=5).ok for _ in range(2)] == [True, True]
    assert health.ask("status").values["pending"] is None
    assert [health.ask("commit", snapshot=5).ok for _ in range(2)] == [True, True]
    assert health.ask("status").values["snapshot"] == 5
    assert health.wait_for("a", HealthVerdict.UP)


def test_what_cannot_be_used_is_refused_in_prepare(health: Health, tmp_path: Path):
    """A snapshot that is not there or a CA file without a certificate is an error before anything changes."""
    health.accept(of([server("a", 1, None)]))
    health.start()
    assert health.ask("prepare", snapshot=9).errors[0].message == "no snapshot 9"
    health.paths.snapshot(9).write_bytes(b"{}")
    assert "9.json" in health.ask("prepare", snapshot=9).errors[0].message
    check = snapshots.check("https", verify=str(tmp_path / "ca.pem"))
    refused = health.propose(of([server("a", 1, check)], number=2))
    assert [problem.message for problem in refused.errors] == [
        f"masters/a: CA file {tmp_path / 'ca.pem'}: No such file or directory"
    ]
    assert health.ask("status").values["snapshot"] == 1
