"""The first line of the status page."""

import pytest
from support.values import boards
from support.values.observations import NOW, observations, supervised
from support.values.snapshots import check, pool, server, snapshot

from appliance.core.status.assessment import assess
from appliance.core.status.observations import Observations
from appliance.core.status.status import DegradedStart, ProgramState
from appliance.core.status.verdict import verdict
from appliance.model.check_results import CheckResult
from appliance.model.server_states import AdminState, HealthVerdict

pytestmark = pytest.mark.pure


def said(found: Observations) -> str:
    """Return the verdict; moments are their seconds."""
    return verdict(assess(found, NOW), moment=lambda at: f"{at:.0f}s")


def with_servers(*records: object) -> Observations:
    """Return what is found with a pool of five servers, of which health says this."""
    servers = [server(f"m{number}", check=check()) for number in range(5)]
    return observations(
        snapshot=snapshot(number=7, pools=[pool("pool", servers=servers)]),
        health=boards.health_board(*records),
    )


def down(name: str, **changes: object) -> object:
    """Return what health says of a server that is down."""
    return boards.health(
        name, verdict=HealthVerdict.DOWN, result=CheckResult.L7STS, status=500, since=140.0, **changes
    )


def test_all_is_well():
    """Then it says no more."""
    assert said(observations()) == "Serving."


def test_a_server_that_is_down():
    """Since when, and why."""
    others = [boards.health(f"m{number}") for number in range(1, 5)]
    words = "Serving. 1 of 5 servers of pool is down: m0 since 140s (L7STS/500)."
    assert said(with_servers(down("m0"), *others)) == words


def test_many_servers_are_not_all_named():
    """Three names are enough for one line; other states have sentences of their own."""
    records = [down(f"m{number}") for number in range(4)]
    drained = boards.health("m4", admin=AdminState.DRAIN, since=0.0)
    words = said(with_servers(*records, drained))
    assert words.startswith(
        "Not serving. Pool pool has no server up. 4 of 5 servers of pool are down: m0 since"
    )
    assert words.endswith("and 1 more. 1 of 5 servers of pool is draining: m4.")


def test_a_proxy_without_workers():
    """It serves nobody, whatever its servers do; other problems are told as `status` tells them."""
    words = said(observations(workers=()))
    assert words == "Not serving. Proxy-api is running: no worker of it accepts connections."


def test_a_program_that_does_not_run():
    """Traffic goes on without it."""
    programs = (supervised("reload", ProgramState.BACKOFF), supervised("health"), supervised("proxy-api"))
    assert said(observations(supervised=programs)) == "Serving. Reload is backoff."


def test_the_last_good_configuration():
    """It serves, by an older configuration."""
    words = said(observations(degraded=DegradedStart(since=1.0, errors=())))
    assert words == "Serving. The last good configuration runs, because the file has errors."


def test_nothing_runs():
    """Without programs nothing is known of servers."""
    found = observations(supervised="no such file", answers={}, workers=(), health=None)
    assert said(found).startswith(
        "Not serving. Pool pool has no server up. 1 of 1 servers of pool is unknown"
    )
