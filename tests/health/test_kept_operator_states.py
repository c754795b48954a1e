"""Drain and maint outlive the program, and a damaged file."""

import pytest
from support.peers.backend import Backend
from support.processes.waiting import wait_until
from support.programs.health import Health, admins, of, server

from appliance.model.server_states import AdminState, HealthVerdict

pytestmark = pytest.mark.programs


def test_operator_states_act_at_once_and_are_kept(health: Health, backend: Backend):
    """Drain, maint and ready are on the board, in the log, and there again after kill -9."""
    health.accept(of([server("a", backend), server("b", backend)]))
    health.start()
    health.wait_for("a", HealthVerdict.UP)
    drained = health.ask("set-state", pool="masters", server="a", state="drain")
    assert drained.values == {"pool": "masters", "server": "a", "state": "drain", "changed": True}
    assert health.ask("set-state", pool="masters", server="a", state="drain").values["changed"] is False
    assert health.ask("set-state", pool="masters", server="b", state="maint").ok
    wait_until(
        lambda: admins(health) == {"a": AdminState.DRAIN, "b": AdminState.MAINT}, what="the board says so"
    )
    health.kill()
    health.start()
    assert admins(health) == {"a": AdminState.DRAIN, "b": AdminState.MAINT}
    kept = {event["server"]: event["state"] for event in health.events("operator-state-kept")}
    assert kept == {"a": "drain", "b": "maint"}
    assert health.ask("set-state", pool="masters", server="b", state="ready").ok
    health.wait_for("b", HealthVerdict.UP)
    assert [event["event"] for event in health.events("server-drain", "server-maint", "server-ready")] == [
        "server-drain",
        "server-maint",
        "server-ready",
    ]


def test_operator_states_come_from_the_board_when_their_file_is_broken(health: Health):
    """A server in maint is not given traffic because a file was damaged."""
    health.accept(of([server("a", 1, None)]))
    health.start()
    health.ask("set-state", pool="masters", server="a", state="maint")
    wait_until(lambda: admins(health) == {"a": AdminState.MAINT}, what="the board says so")
    health.kill()
    health.paths.operator_states.write_bytes(b"{")
    health.start()
    assert admins(health) == {"a": AdminState.MAINT}
