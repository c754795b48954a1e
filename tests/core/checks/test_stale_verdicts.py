"""How old a verdict may be before `status` says so."""

from dataclasses import replace

import pytest
from msgspec import structs
from support.values.snapshots import check, pool, server, snapshot

from appliance.core.checks.stale_verdicts import bound, outdated
from appliance.model.check_results import CheckResult
from appliance.model.server_states import AdminState, HealthVerdict
from appliance.wire.boards.health_board import ServerHealthRecord

pytestmark = pytest.mark.pure

_NOW = 1_000_000.0
_CHECK = check(interval=5.0, fast_interval=2.0, down_interval=4.0, timeout=3.0)
_BOUND = 5.0 + 3.0 + 10.0
_SNAPSHOT = snapshot(
    pools=[pool("masters", servers=[server("one", check=_CHECK), server("two", check=_CHECK)])]
)


def _health(name: str, *, age: float) -> ServerHealthRecord:
    return ServerHealthRecord(
        pool="masters", server=name, verdict=HealthVerdict.UP, admin=AdminState.READY, weight=1.0, since=0.0,
        checked_at=_NOW - age, duration=0.0, result=CheckResult.L4OK, status=0, streak=1, failed=0,
        host="192.0.2.1", port=6443, detail="", unreachable=False,
    )  # fmt: skip


def _problems(*found: ServerHealthRecord) -> list[str]:
    return list(outdated(_SNAPSHOT, {(each.pool, each.server): each for each in found}, now=_NOW))


def test_the_bound_is_what_a_living_health_never_needs():
    """The longest pause, a whole check, and the watchdog's period."""
    assert bound(_CHECK, watchdog=10.0) == _BOUND
    assert bound(replace(_CHECK, down_interval=60.0), watchdog=3.0) == 66.0


def test_a_verdict_of_now_is_no_problem():
    """Up to the bound nothing is said."""
    assert _problems(_health("one", age=_BOUND), _health("two", age=0.0)) == []


def test_old_ones_are_one_problem():
    """The oldest is named with its age; the others are counted."""
    said = "checks are outdated, and their last verdicts hold: masters/one was checked"
    assert _problems(_health("one", age=19.0), _health("two", age=1.0)) == [f"{said} 19 s ago"]
    assert _problems(_health("one", age=50.0), _health("two", age=40.0)) == [
        f"{said} 50 s ago, and 1 more are as old"
    ]


def test_what_is_not_checked_is_not_outdated():
    """Neither in maintenance nor before the first check, nor where a server has none, or is not known."""
    maint = structs.replace(_health("one", age=999.0), admin=AdminState.MAINT)
    fresh = structs.replace(_health("two", age=999.0), result=CheckResult.UNCHECKED)
    assert _problems(maint, fresh) == []
    unchecked = snapshot(pools=[pool("masters", servers=[server("one", check=None)])])
    assert list(outdated(unchecked, {("masters", "one"): _health("one", age=999.0)}, now=_NOW)) == []
    assert _problems() == []
