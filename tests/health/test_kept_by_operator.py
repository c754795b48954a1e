"""Drain, maint and weights outlive the program, and a damaged file."""

import pytest
from support.health.health import Health, admins, of, server
from support.peers.backend import Backend
from support.processes.waiting import wait_until

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


def test_weights_act_at_once_and_are_kept(health: Health):
    """They are on the board, in the log, and there again after kill -9 and with a broken file."""
    health.accept(of([server("a", 1, None, weight=10), server("b", 1, None, weight=10)]))
    health.start()
    done = health.ask("set-weight", pool="masters", server="a", weight="50%")
    assert done.values == {
        "pool": "masters", "server": "a", "weight": "50%", "configured": 10, "changed": True,
    }  # fmt: skip
    assert health.ask("set-weight", pool="masters", server="a", weight="50%").values["changed"] is False
    assert health.ask("set-weight", pool="masters", server="b", weight="0").ok
    wait_until(lambda: _weights(health) == {"a": 5.0, "b": 0.0}, what="the board says so")
    health.kill()
    health.start()
    assert _weights(health) == {"a": 5.0, "b": 0.0}
    kept = {event["server"]: event["weight"] for event in health.events("operator-weight-kept")}
    assert kept == {"a": "50%", "b": "0"}
    health.kill()
    health.paths.operator_weights.write_bytes(b"{")
    health.start()
    assert _weights(health) == {"a": 5.0, "b": 0.0}
    assert health.ask("set-weight", pool="masters", server="b", weight="100%").ok
    wait_until(lambda: _weights(health) == {"a": 5.0, "b": 10.0}, what="the configured weight is back")
    given = [(event["server"], event["weight"]) for event in health.events("server-weight")]
    assert given == [("a", "50%"), ("b", "0"), ("b", "10")]


def _weights(health: Health) -> dict[str, float]:
    board = health.board()
    return {each.server: each.weight for each in board.servers} if board else {}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"server": "z", "weight": "5"}, "unknown server masters/z; known in masters: a"),
        ({"server": "a", "weight": "999"}, "'999' is not a weight; use 0 to 256"),
        ({"server": "a"}, "set-weight: weight: Expected `str`, got `null`"),
    ],
)
def test_a_weight_that_cannot_be_is_refused(health: Health, values: dict[str, str], message: str):
    """With the known servers, or what a weight is."""
    health.accept(of([server("a", 1, None)]))
    health.start()
    answer = health.ask("set-weight", pool="masters", **values)
    assert [problem.message.startswith(message) for problem in answer.errors] == [True]
