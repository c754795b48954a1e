"""The rows of HAProxy's statistics."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from msgspec import structs
from support.values import boards
from support.values.observations import NOW, observations, supervised
from support.values.snapshots import check, frontend, group, pool, server, snapshot

from appliance.core.haproxy import show_answers
from appliance.core.haproxy.activity import Activity, Counted, ProxyKind
from appliance.core.haproxy.statistics import Observed, Row, rows
from appliance.core.status.assessment import assess
from appliance.core.status.status import Status
from appliance.model.check_results import CheckResult
from appliance.model.server_states import AdminState, HealthVerdict
from appliance.model.server_weights import operator_weight
from appliance.model.snapshot.frontends import SniRoute
from appliance.wire.boards.health_board import PoolHealthRecord, ServerHealthRecord
from appliance.wire.haproxy.commands import ShowStat
from appliance.wire.haproxy.statistics import COLUMNS, STATE_COLUMNS

pytestmark = pytest.mark.pure

POOL = pool(
    "masters",
    servers=[
        server("m0", weight=4, check=check()),
        server("m1", max_connections=10, check=check()),
        server("b0", backup=True),
    ],
)
SNAPSHOT = snapshot(
    number=7, groups=[group("api", frontends=[frontend("api", pool="masters")])], pools=[POOL]
)
WORKER = boards.worker(
    frontends=(boards.frontend_counters("api", current=1, total=5),),
    servers=(
        structs.replace(
            boards.server_counters("m0", pool="masters", current=1, total=4), given_up=2, retried=3
        ),
        structs.replace(
            boards.server_counters("m1", pool="masters", total=1), redispatched=5, client_aborts=6
        ),
    ),
)


def health(name: str, **changes: object) -> ServerHealthRecord:
    """Return what health says of a server of the pool."""
    return boards.health(name, pool="masters", **changes)


def status(*records: ServerHealthRecord, **changes: object) -> Status:
    """Return the status with two workers, and what health says."""
    found = {"snapshot": SNAPSHOT, "workers": (WORKER, WORKER), "health": boards.health_board(*records)}
    return assess(observations(**found | changes), NOW)


def of(*records: ServerHealthRecord, activity: Activity | None = None, **changes: object) -> list[Row]:
    """Return the rows."""
    observed = Observed(
        status=status(*records, **changes), snapshot=SNAPSHOT, activity=activity or Activity(), now=NOW
    )
    return list(rows(observed))


ALL_UP = (health("m0", weight=4.0, since=180.0), health("m1", since=150.0), health("b0", since=100.0))


def some(row: Row, *columns: str) -> Sequence[int | str | None]:
    """Return some columns of a row."""
    return [row.get(each) for each in columns]


def test_the_order_and_the_kinds():
    """Frontends first, then each pool's servers before the pool; ids as HAProxy gives them."""
    found = of(*ALL_UP)

    assert [some(row, "pxname", "svname", "type", "iid", "sid") for row in found] == [
        ["api", "FRONTEND", 0, 2, 0],
        ["masters", "m0", 2, 3, 1],
        ["masters", "m1", 2, 3, 2],
        ["masters", "b0", 2, 3, 3],
        ["masters", "BACKEND", 1, 3, 0],
    ]
    assert {column for row in found for column in row} <= set(COLUMNS)


def test_a_frontend():
    """Its counters are the sums of all workers; it is open while a worker of its program accepts."""
    row = of(*ALL_UP)[0]

    assert some(row, "scur", "stot", "bin", "bout", "dcon", "conn_tot", "status", "mode") == [
        2, 10, 100, 400, 2, 12, "OPEN", "tcp",
    ]  # fmt: skip
    assert of(*ALL_UP, workers=())[0]["status"] == "STOP"
    assert of(*ALL_UP, workers=(), supervised=(supervised("reload"),))[0]["status"] == "STOP"


def test_a_server():
    """Its counters, its state, its check."""
    m0, m1, b0 = of(*ALL_UP)[1:4]

    assert some(m0, "scur", "stot", "econ", "wretr", "status", "weight", "act", "bck") == [
        2, 8, 4, 6, "UP", 4, 1, 0,
    ]  # fmt: skip
    assert some(m1, "wredis", "cli_abrt", "slim", "lastchg", "check_status") == [10, 12, 10, 50, "L7OK"]
    assert some(b0, "status", "act", "bck", "check_status", "chkfail") == ["no check", 0, 1, None, None]
    assert "slim" not in m0


@pytest.mark.parametrize(("all_backups", "weight"), [(False, 2), (True, 5)])
def test_the_weight_of_a_pool_on_its_backups(all_backups: bool, weight: int):  # noqa: FBT001  # a parameter
    """It is that of the servers in use: the first backup, or all with `all_backups`."""
    spares = [server("b0", weight=2, backup=True), server("b1", weight=3, backup=True)]
    settings = pool("masters", servers=[server("m0", check=check()), *spares], all_backups=all_backups)
    given = replace(SNAPSHOT, pools=(settings,))
    records = [health("m0", verdict=HealthVerdict.DOWN), health("b0", weight=2.0), health("b1", weight=3.0)]
    observed = Observed(status=status(*records, snapshot=given), snapshot=given, activity=Activity(), now=NOW)
    *_, row = rows(observed)
    assert some(row, "act", "bck", "weight", "uweight") == [0, 2, weight, weight]


def test_a_server_that_is_down():
    """How often, and for how long, with what it is down now."""
    down = health(
        "m0",
        verdict=HealthVerdict.DOWN,
        result=CheckResult.L4CON,
        weight=4.0,
        since=190.0,
        downs=3,
        down_seconds=20.5,
        failed_up=7,
    )
    row = of(down, *ALL_UP[1:])[1]

    assert some(row, "status", "weight", "chkdown", "chkfail", "downtime") == ["DOWN", 4, 3, 7, 30]


@pytest.mark.parametrize(
    ("weight", "shown", "throttle"), [(4.0, 4, None), (1.0, 1, 25), (0.2, 1, 5), (0.0, 0, None)]
)
def test_slow_start(weight: float, shown: int, throttle: int | None):
    """A server on its way up has a part of its weight, and tells how large that is in percent."""
    row = of(health("m0", weight=weight), *ALL_UP[1:])[1]

    assert some(row, "weight", "throttle") == [shown, throttle]


@pytest.mark.parametrize(
    ("given", "effective", "shown"),
    [
        ("50%", 2.0, ["UP", 2, 2, None]),
        ("50%", 1.0, ["UP", 1, 2, 50]),
        ("12%", 0.48, ["UP", 1, 1, None]),
        ("30", 30.0, ["UP", 30, 30, None]),
        ("0", 0.0, ["DRAIN", 0, 0, None]),
    ],
)
def test_a_weight_that_an_operator_gave(given: str, effective: float, shown: list[object]):
    """It is the weight that is asked for, of which slow start gives a part; 0 is DRAIN."""
    row = of(health("m0", weight=effective, operator_weight=operator_weight(given)), *ALL_UP[1:])[1]

    assert some(row, "status", "weight", "uweight", "throttle") == shown


def test_a_server_that_health_knows_nothing_of():
    """It has its configured weight, and no time of a change."""
    row = of()[1]

    assert some(row, "status", "weight", "lastchg", "check_status") == ["DOWN", 4, 0, "INI"]


def test_a_pool():
    """The sums of its servers; sessions and limit are those of its frontends."""
    row = of(*ALL_UP)[-1]

    assert some(row, "status", "act", "bck", "weight", "uweight", "algo") == ["UP", 2, 1, 5, 5, "roundrobin"]
    assert some(row, "scur", "stot", "lbtot", "slim", "econ", "lastchg") == [2, 10, 10, 1000, 4, 100]


def test_a_pool_by_server_name():
    """Where a frontend has several pools, sessions of one are those that its servers had."""
    both = frontend("api", pool="other", sni=(SniRoute(names=("a",), pool="masters"),))
    named = replace(SNAPSHOT, groups=(group("api", frontends=[both]),))
    worker = replace(WORKER, frontends=(boards.frontend_counters("api", total=50),))
    shown = status(*ALL_UP, snapshot=named, workers=(worker,))
    observed = Observed(status=shown, snapshot=named, activity=Activity(), now=NOW)

    assert some(list(rows(observed))[-1], "pxname", "stot", "lbtot", "slim") == ["masters", 5, 5, 1000]


def test_a_pool_on_its_backups():
    """Without other servers the weight is that of the backups."""
    down = [health(name, verdict=HealthVerdict.DOWN) for name in ("m0", "m1")]
    row = of(*down, ALL_UP[2])[-1]

    assert some(row, "status", "act", "bck", "weight") == ["UP", 0, 1, 1]


def test_a_pool_that_is_down():
    """It is down since the last of its servers is."""
    down = [
        health(name, verdict=HealthVerdict.DOWN, since=since)
        for name, since in (("m0", 120.0), ("m1", 190.0), ("b0", 110.0))
    ]
    assert some(of(*down)[-1], "status", "act", "weight", "lastchg") == ["DOWN", 0, 0, 10]
    assert of()[-1]["lastchg"] == 0


def test_how_often_a_pool_was_down():
    """As `health` has counted it, with the seconds that it is down for now."""
    known = PoolHealthRecord(pool="masters", downs=3, down_seconds=20.5, down_since=NOW - 10)
    board = replace(boards.health_board(*ALL_UP), pools=(known,))
    for pools, columns in ((board.pools, [3, 30]), ((), [0, 0])):
        row = of(health=replace(board, pools=pools))[-1]
        assert some(row, "chkdown", "downtime") == columns


def test_trends_are_shown():
    """Rates and peaks of who looks every second; a session that came just now was 0 seconds ago."""
    activity = Activity()
    place = (ProxyKind.SERVER, "masters", "m0")
    activity.look({place: Counted(current=0, total=0)}, NOW - 3)
    busy = Counted(
        current=9, total=20, queued=7, connected=20, queue_seconds=0.1, connect_seconds=0.04,
        ended=10, session_seconds=0.3,
    )  # fmt: skip
    activity.look({place: busy}, NOW - 2)
    row = of(*ALL_UP, activity=activity)[1]

    assert some(row, "rate", "rate_max", "smax", "qmax", "lastsess", "qtime", "ctime", "ttime") == [
        20, 20, 9, 7, 2, 5, 2, 30,
    ]  # fmt: skip
    assert of(*ALL_UP)[1]["lastsess"] == -1


def test_the_longest_of_each_time():
    """Of all workers, in milliseconds; a pool has that of its servers; the response is of HTTP."""
    times = {"longest_queue": 0.5, "longest_connect": 0.25, "longest_session": 7.0}
    fast = boards.server_counters("m1", pool="masters")
    slow = structs.replace(boards.server_counters("m0", pool="masters"), **times)
    worker, other = boards.worker(servers=(slow, fast)), boards.worker(servers=(fast,))
    found = {str(row["svname"]): row for row in of(*ALL_UP, workers=(other, worker))}

    columns = ("qtime_max", "ctime_max", "rtime_max", "ttime_max")
    assert some(found["m0"], *columns) == some(found["BACKEND"], *columns) == [500, 250, 0, 7000]
    assert some(found["m1"], *columns) == [0, 0, 0, 0]
    assert some(found["FRONTEND"], *columns) == [None] * 4


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (ShowStat(), ["FRONTEND", "m0", "m1", "b0", "BACKEND"]),
        (ShowStat(kinds=1), ["FRONTEND"]),
        (ShowStat(kinds=2), ["BACKEND"]),
        (ShowStat(proxy="masters", kinds=4), ["m0", "m1", "b0"]),
        (ShowStat(proxy="3", kinds=4, server=2), ["m1"]),
        (ShowStat(proxy="2"), ["FRONTEND"]),
        (ShowStat(proxy="nobody"), []),
    ],
)
def test_rows_can_be_chosen(wanted: ShowStat, names: list[str]):
    """By the proxy's name or number, by kinds, by the server's number."""
    assert [row["svname"] for row in show_answers.chosen(of(*ALL_UP), wanted)] == names


def test_a_server_is_found_by_its_names():
    """A frontend is no pool, and a pool no server."""
    found = of(*ALL_UP)

    assert show_answers.has_pool(found, "masters")
    assert not show_answers.has_pool(found, "api")
    row = show_answers.server_row(found, "masters", "m1")
    assert row
    assert row["sid"] == 2
    assert show_answers.server_row(found, "masters", "BACKEND") is None
    assert show_answers.server_row(found, "api", "m1") is None


def states(*records: ServerHealthRecord) -> dict[str, dict[str, int | str]]:
    """Return the columns of `show servers state` by the names of the servers."""
    lines = show_answers.server_states(of(*records), SNAPSHOT, None)
    named = [dict(zip(STATE_COLUMNS, line, strict=True)) for line in lines]
    return {str(each["srv_name"]): each for each in named}


@pytest.mark.parametrize(
    ("changes", "numbers"),
    [
        ({}, [2, 0, 15, 3, 4]),
        ({"verdict": HealthVerdict.DOWN}, [0, 0, 15, 3, 1]),
        ({"admin": AdminState.DRAIN}, [3, 8, 15, 3, 4]),
        ({"admin": AdminState.MAINT}, [0, 1, 15, 3, 4]),
    ],
)
def test_states_are_numbers(changes: dict[str, object], numbers: list[int]):
    """Operational and administrative state, result of the check and HAProxy's counter."""
    shown = states(health("m0", streak=1, **changes), *ALL_UP[1:])["m0"]

    columns = ("srv_op_state", "srv_admin_state", "srv_check_status", "srv_check_result", "srv_check_health")
    assert [shown[each] for each in columns] == numbers
    assert (shown["be_name"], shown["srv_port"], shown["srv_check_state"]) == ("masters", 8080, 6)


def test_a_server_without_checks_has_no_result():
    """As HAProxy has it."""
    shown = states(*ALL_UP)["b0"]
    assert (shown["srv_check_result"], shown["srv_check_state"], shown["srv_op_state"]) == (0, 0, 2)


def test_a_check_that_fails_is_number_two():
    """And other pools are left out where one is named."""
    bad = health("m0", verdict=HealthVerdict.DOWN, result=CheckResult.L4CON)
    assert states(bad)["m0"]["srv_check_result"] == 2
    assert list(show_answers.server_states(of(*ALL_UP), SNAPSHOT, "others")) == []
