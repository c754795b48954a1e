"""The first lines of the status page."""

from dataclasses import replace

import pytest
from support.values import boards
from support.values.observations import NOW, observations, supervised
from support.values.snapshots import check, pool, server, snapshot

from appliance.core.status.assessment import assess
from appliance.core.status.headline import Headline, Level, headline
from appliance.core.status.observations import Observations
from appliance.core.status.status import DegradedStart, ProgramState, VirtualIpStatus
from appliance.model.check_results import CheckResult
from appliance.model.server_states import AdminState, HealthVerdict

pytestmark = pytest.mark.pure

VIRTUAL_IP = VirtualIpStatus(
    name="api",
    addresses=("192.0.2.100/24",),
    interface="eth0",
    router_id=42,
    version=3,
    sync_group=None,
    state="backup",
    since=100.0,
    active=False,
    active_peer="192.0.2.2",
    priority=100,
    base=100,
    yielded=False,
)


def judged(found: Observations, *virtual_ips: VirtualIpStatus) -> Headline:
    """Return the verdict; moments are their seconds."""
    status = replace(assess(found, NOW), virtual_ips=virtual_ips)
    return headline(status, moment=lambda at: f"{at:.0f}s")


def said(found: Observations) -> str:
    """Return the verdict in one line."""
    return judged(found).text


def with_servers(*records: object, name: str = "masters") -> Observations:
    """Return what is found with a pool of five servers, of which health says this."""
    servers = [server(f"m{number}", check=check()) for number in range(5)]
    return observations(
        snapshot=snapshot(number=7, groups=[], pools=[pool(name, servers=servers)]),
        health=boards.health_board(*records),
    )


def down(name: str, *, in_pool: str = "masters", **changes: object) -> object:
    """Return what health says of a server that is down."""
    return boards.health(
        name,
        pool=in_pool,
        verdict=HealthVerdict.DOWN,
        result=CheckResult.L7STS,
        status=500,
        since=140.0,
        **changes,
    )


def up(*names: str, in_pool: str = "masters") -> list[object]:
    """Return what health says of servers that are up."""
    return [boards.health(name, pool=in_pool) for name in names]


def test_all_is_well():
    """Then it says no more."""
    assert judged(observations()) == Headline(level=Level.OK, first="Serving.", others=())


def test_a_server_that_is_down():
    """Since when, why, and which one."""
    words = judged(with_servers(down("m0"), *up("m1", "m2", "m3", "m4")))
    assert words.others[0] == "1 of 5 masters is down since 140s: L7STS/500 (m0)."
    assert said(with_servers(down("m0", in_pool="app"), *up("m1", "m2", in_pool="app"), name="app")).count(
        "1 of 5 servers of app is down since 140s: L7STS/500 (m0)."
    )


def test_it_asks_for_attention():
    """What clients do not notice is no alarm."""
    found = observations(degraded=DegradedStart(since=1.0, errors=()))
    assert judged(found).level is Level.ATTENTION


def test_many_servers_are_not_all_named():
    """Three names are enough for one line; other states have sentences of their own."""
    records = [down(f"m{number}") for number in range(4)]
    drained = boards.health("m4", pool="masters", admin=AdminState.DRAIN, since=0.0)
    many, one = judged(with_servers(*records, drained)).others[:2]
    assert many.startswith("4 of 5 masters are down: m0 since 140s (L7STS/500), m1 since")
    assert many.endswith(" and 1 more.")
    assert one == "1 of 5 masters is draining (m4)."


def test_several_in_maintenance():
    """They have no reason but the operator's."""
    records = [
        boards.health(name, pool="masters", admin=AdminState.MAINT, since=9.0) for name in ("m0", "m1")
    ]
    words = judged(with_servers(*records, *up("m2", "m3", "m4"))).others[0]
    assert words == "2 of 5 masters are in maintenance: m0 since 9s, m1 since 9s."


def test_a_proxy_without_workers():
    """It serves nobody, whatever its servers do; other problems are told as `status` tells them."""
    words = judged(observations(workers=()))
    assert words.level is Level.CRITICAL
    assert words.text == "Not serving. Proxy-api is running: none of its workers accepts connections."


def test_a_pool_without_servers():
    """It is told once, though it is a problem of the status too."""
    found = observations(
        health=boards.health_board(boards.health(verdict=HealthVerdict.DOWN, result=CheckResult.L4CON))
    )
    words = judged(found)
    assert words.level is Level.CRITICAL
    assert words.text.startswith("Not serving. Pool pool has no server up. 1 of 1 servers of pool is down")
    assert words.text.count("no server up") == 1


def test_a_program_that_does_not_run():
    """Traffic goes on without it."""
    programs = (supervised("reload", ProgramState.BACKOFF), supervised("health"), supervised("proxy-api"))
    assert said(observations(supervised=programs)) == "Serving. Reload is backoff."


def test_the_last_good_configuration():
    """It serves, by an older configuration."""
    words = said(observations(degraded=DegradedStart(since=1.0, errors=())))
    assert words == "Serving. The last good configuration runs since 1s: the file has errors."


def test_nothing_runs():
    """Without programs nothing is known of servers."""
    found = observations(supervised="no such file", answers={}, workers=(), health=None)
    assert said(found).startswith(
        "Not serving. Pool pool has no server up. 1 of 1 servers of pool is unknown (server-0)."
    )


@pytest.mark.parametrize(("state", "first"), [("active", "Serving."), (None, "Not serving.")])
def test_virtual_ips_alone(state: str | None, first: str):
    """Without any frontend it serves where vrrp does."""
    found = observations(
        snapshot=snapshot(number=7, groups=[], pools=[]), workers=(), health=None, supervised=()
    )
    words = judged(found, replace(VIRTUAL_IP, state=state, active=state and True, active_peer=None))
    assert words.first == first


@pytest.mark.parametrize(
    ("changes", "level"),
    [
        ({}, Level.OK),
        ({"active": True, "active_peer": None}, Level.OK),
        ({"active": None, "active_peer": None, "state": None}, Level.OK),
        ({"active_peer": None, "state": "fault"}, Level.CRITICAL),
    ],
)
def test_virtual_ips(changes: dict[str, object], level: Level):
    """One that nobody holds as far as is heard is an alarm; where vrrp does not answer that is unknown."""
    words = judged(observations(), replace(VIRTUAL_IP, **changes))
    lost = Headline(
        level=Level.CRITICAL,
        first="Serving, but no node holds a virtual IP.",
        others=("Virtual IP api is held by no router that this node receives from.",),
    )
    assert words == (lost if level is Level.CRITICAL else Headline(level=level, first="Serving.", others=()))
