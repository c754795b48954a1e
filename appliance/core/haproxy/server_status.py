"""The state of a server and its last check in HAProxy's words (management.txt 9.1)."""

from collections.abc import Mapping
from typing import Final

from appliance.core.status.status import ServerStatus
from appliance.model.check_results import CheckResult
from appliance.model.server_states import ServerState
from appliance.model.snapshot.pools import Check

_OK: Final = frozenset({CheckResult.L4OK, CheckResult.L6OK, CheckResult.L7OK})
_DESCRIPTIONS: Final[Mapping[CheckResult, str]] = {
    CheckResult.UNCHECKED: "Initializing",
    CheckResult.L4OK: "Layer4 check passed",
    CheckResult.L4TOUT: "Layer4 timeout",
    CheckResult.L4CON: "Layer4 connection problem",
    CheckResult.L6OK: "Layer6 check passed",
    CheckResult.L6TOUT: "Layer6 timeout",
    CheckResult.L6RSP: "Layer6 invalid response",
    CheckResult.L7OK: "Layer7 check passed",
    CheckResult.L7TOUT: "Layer7 timeout",
    CheckResult.L7RSP: "Layer7 invalid response",
    CheckResult.L7STS: "Layer7 wrong status",
}


def server_status(server: ServerStatus, check: Check | None) -> str:
    """Return the status: "UP 1/3" if one more bad check takes it down, "DOWN 1/2" if one good check is due.

    A server that has not been checked yet takes no connections, which is DOWN to HAProxy; one with a weight
    of 0 is DRAIN.
    """
    match server.state:
        case ServerState.MAINT | ServerState.DRAIN:
            return server.state.value.upper()
        case ServerState.UP if server.effective_weight == 0:
            return "DRAIN"
        case ServerState.UP if check is None:
            return "no check"
        case ServerState.UP:
            return f"UP {_left(server, check)}" if check and _goes_down(server) else "UP"
        case _:
            return (
                f"DOWN {min(_streak(server), check.rise - 1)}/{check.rise}"
                if check and _comes_up(server)
                else "DOWN"
            )


def check_columns(server: ServerStatus, check: Check) -> dict[str, int | str]:
    """Return the columns about checks; a server in maintenance is not checked."""
    columns: dict[str, int | str] = {"check_rise": check.rise, "check_fall": check.fall}
    last = server.check
    if last is None:
        return {**columns, "check_status": "INI", "check_desc": "Initializing", "check_health": 0}
    columns |= {
        "check_status": last.result.value,
        "check_desc": _DESCRIPTIONS[last.result],
        "check_duration": round(last.duration * 1000),
        "check_health": _health(server, check),
        "last_chk": last.detail,
    }
    return {**columns, "check_code": last.status} if last.status else columns


def _health(server: ServerStatus, check: Check) -> int:
    """Return HAProxy's counter: below `rise` a server is down, `rise + fall - 1` is the best."""
    if server.state is ServerState.DOWN:
        return min(_streak(server), check.rise - 1) if _comes_up(server) else 0
    best = check.rise + check.fall - 1
    return max(check.rise, best - _streak(server)) if _goes_down(server) else best


def _left(server: ServerStatus, check: Check) -> str:
    return f"{max(1, check.fall - _streak(server))}/{check.fall}"


def _goes_down(server: ServerStatus) -> bool:
    return server.check is not None and server.check.result not in _OK


def _comes_up(server: ServerStatus) -> bool:
    return server.state is ServerState.DOWN and server.check is not None and server.check.result in _OK


def _streak(server: ServerStatus) -> int:
    return server.check.streak if server.check else 0
