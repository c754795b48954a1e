"""Whether a server that fails its checks answers at all."""

from dataclasses import replace

import pytest
from support.health.server_health import CHECK, feed, record_of, settings_of

from appliance.core.checks.check_outcome import CheckOutcome
from appliance.core.checks.server_health import HealthEvent, ServerHealth
from appliance.model.check_results import CheckResult
from appliance.model.server_states import AdminState, HealthVerdict

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("result", "unreachable"),
    [
        (CheckResult.L4CON, True),
        (CheckResult.L4TOUT, True),
        (CheckResult.L6RSP, True),
        (CheckResult.L6TOUT, True),
        (CheckResult.L7TOUT, True),
        (CheckResult.L7RSP, False),
        (CheckResult.L7STS, False),
    ],
)
def test_a_bad_answer_is_an_answer(result: CheckResult, unreachable: bool):  # noqa: FBT001  # what is expected
    """The kind of the failure tells a server that is gone from one that says that it is not well."""
    health = ServerHealth(settings_of(), now=0.0)
    health.check_ended(CheckOutcome(result=result), started=0.0, now=0.0)
    assert (health.verdict, health.unreachable) == (HealthVerdict.DOWN, unreachable)


@pytest.mark.parametrize(
    ("results", "unreachable", "last"),
    [
        ("x", True, HealthEvent.DOWN),
        ("-", False, HealthEvent.DOWN),
        ("+xxx", True, HealthEvent.DOWN),
        ("+---", False, HealthEvent.DOWN),
        ("+-xx", False, HealthEvent.DOWN),
        ("+-xxx", True, HealthEvent.UNREACHABLE),
        ("+xx-", False, HealthEvent.DOWN),
        ("+xx-x", False, None),
        ("+xxx-", False, HealthEvent.ANSWERS),
        ("+xxx-x", False, None),
        ("-xx", False, None),
        ("-xxx", True, HealthEvent.UNREACHABLE),
        ("-xx-xx", False, None),
        ("-xx+xx", False, None),
        ("x+", True, None),
        ("x+x", True, None),
        ("x++", False, HealthEvent.UP),
        ("+xx", False, None),
    ],
)
def test_a_server_is_unreachable_when_it_has_failed_so_for_its_fall(
    results: str,
    unreachable: bool,  # noqa: FBT001  # what is expected
    last: HealthEvent | None,
):
    """It takes as many failures of that kind in a row as going down does; a bad answer ends it at once."""
    health = ServerHealth(settings_of(), now=0.0)
    assert feed(health, results)[-1] is last
    assert health.unreachable is unreachable


def test_a_server_that_may_have_fallen_silent_is_checked_faster():
    """As with any result that speaks against what is held, the next check comes after `fast_interval`."""
    health = ServerHealth(settings_of(), now=0.0)
    feed(health, "-", step=0.0)
    assert health.next_check == 5.0
    feed(health, "x", step=0.0)
    assert health.next_check == 2.0
    feed(health, "xx", step=0.0)
    assert (health.unreachable, health.next_check) == (True, 5.0)


def test_an_unreachable_server_is_so_after_a_restart_too():
    """What the board says of it is gone on from, and forgotten when it comes up."""
    before = ServerHealth(settings_of(), now=0.0)
    feed(before, "x")
    after = ServerHealth(settings_of(), now=0.0)
    after.restore(record_of(before, now=1.0, wall=1.0), now=1.0, wall=1.0)
    assert after.unreachable
    assert feed(after, "++")[-1] is HealthEvent.UP
    assert feed(after, "---")[-1] is HealthEvent.DOWN
    assert not after.unreachable


@pytest.mark.parametrize("change", ["maint", "check"])
def test_checks_without_an_answer_before_a_change_do_not_count(change: str):
    """After maintenance, and with another check, counting begins anew."""
    health = ServerHealth(settings_of(), now=0.0)
    feed(health, "-xx")
    if change == "maint":
        for admin in (AdminState.MAINT, AdminState.READY):
            health.set_admin(admin, now=3.0)
    else:
        health.change_settings(settings_of(replace(CHECK, timeout=9.0)), now=3.0)
    assert feed(health, "xx") == [None, None]
    assert not health.unreachable
    assert feed(health, "x") == [HealthEvent.UNREACHABLE]
