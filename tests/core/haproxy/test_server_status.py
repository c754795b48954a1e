"""States of servers and their checks in HAProxy's words."""

import pytest
from support.values.snapshots import check as check_settings
from support.values.statuses import checked, server_status_of

from appliance.core.haproxy.server_status import check_columns, server_status
from appliance.model.check_results import CheckResult
from appliance.model.server_states import ServerState

pytestmark = pytest.mark.pure

CHECK = check_settings(rise=2, fall=3)
OK, BAD = CheckResult.L7OK, CheckResult.L7STS


@pytest.mark.parametrize(
    ("state", "result", "streak", "words", "health"),
    [
        (ServerState.UP, OK, 9, "UP", 4),
        (ServerState.UP, BAD, 1, "UP 2/3", 3),
        (ServerState.UP, BAD, 2, "UP 1/3", 2),
        (ServerState.DOWN, BAD, 7, "DOWN", 0),
        (ServerState.DOWN, OK, 1, "DOWN 1/2", 1),
        (ServerState.DRAIN, OK, 1, "DRAIN", 4),
        (ServerState.MAINT, OK, 1, "MAINT", 4),
    ],
)
def test_how_far_a_server_is(state: ServerState, result: CheckResult, streak: int, words: str, health: int):
    """HAProxy's counter goes from 0 to rise + fall - 1, and its words tell how far it is on its way."""
    found = server_status_of(state=state, check=checked(result=result, streak=streak))

    assert (server_status(found, CHECK), check_columns(found, CHECK)["check_health"]) == (words, health)


@pytest.mark.parametrize(
    ("state", "words"),
    [(ServerState.UP, "no check"), (ServerState.DOWN, "DOWN"), (ServerState.MAINT, "MAINT")],
)
def test_a_server_without_checks(state: ServerState, words: str):
    """It is up, and says why."""
    assert server_status(server_status_of(state=state, check=None), None) == words


@pytest.mark.parametrize("state", [ServerState.CHECKING, None])
def test_a_server_that_nobody_has_judged(state: ServerState | None):
    """It takes no connections, which is down to HAProxy; its check is about to be made."""
    found = server_status_of(state=state, check=None)

    assert server_status(found, CHECK) == "DOWN"
    columns = check_columns(found, CHECK)
    assert (columns["check_status"], columns["check_health"], "check_code" in columns) == ("INI", 0, False)
    assert check_columns(server_status_of(state=ServerState.DOWN, check=None), CHECK)["check_health"] == 0


def test_what_is_told_of_a_check():
    """Its result, what it took in milliseconds, its HTTP status, and the same in words."""
    check = checked(result=BAD, status=503, duration=0.0124, detail="not ready")
    columns = check_columns(server_status_of(check=check), CHECK)

    assert columns == {
        "check_rise": 2,
        "check_fall": 3,
        "check_status": "L7STS",
        "check_desc": "Layer7 wrong status",
        "check_duration": 12,
        "check_health": 3,
        "last_chk": "not ready",
        "check_code": 503,
    }
