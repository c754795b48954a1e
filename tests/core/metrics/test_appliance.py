"""Our own metrics."""

from dataclasses import replace

import pytest
from msgspec import structs
from support.values import boards
from support.values.observations import NOW, answers, observations
from support.values.snapshots import snapshot, virtual_router
from support.vrrp.vrrp_boards import vrrp_board

from appliance.core.metrics.appliance import appliance_metrics
from appliance.core.status.assessment import assess
from appliance.core.status.connection_room import ConnectionRoom
from appliance.core.status.observations import Observations
from appliance.core.status.status import DegradedStart
from appliance.model.drop_reasons import DropReason
from appliance.model.end_reasons import EndReason
from appliance.model.server_states import HealthVerdict
from appliance.model.take_overs import TakenOver, TakeOvers
from appliance.model.worker_phases import WorkerPhase
from appliance.wire.boards.ended_workers import EndedWorkers
from appliance.wire.boards.health_board import NO_CHECKS
from appliance.wire.boards.worker_board import CONNECT_BOUNDS, PoolTimes
from appliance.wire.exposition import Histogram, Metric
from appliance.wire.lines.linger_status import LingerStatus, SharedAddress
from appliance.wire.lines.migrate_status import DepartureStatus, MigrateStatus
from appliance.wire.lines.reload_status import LastReload, ReloadStatus
from appliance.wire.lines.status_answer import StatusAnswer
from appliance.wire.lines.vrrp_status import HeardRouterStatus, RouterStatus, VrrpStatus

pytestmark = pytest.mark.pure

Values = dict[str, dict[str, float]]


def metrics(found: Observations, *, configuration_hash: str | None = "abc") -> dict[str, Metric]:
    """Return the metrics by name, without the beginning that they share."""
    made = appliance_metrics(assess(found, NOW), found, configuration_hash=configuration_hash)
    return {each.name.removeprefix("appliance_"): each for each in made}


def values(found: Observations) -> Values:
    """Return values by name and labels."""
    return {name: dict(each.samples) for name, each in metrics(found).items()}


def reload_answer(**changes: object) -> dict[str, StatusAnswer]:
    """Return answers of all programs, and what `reload` says besides."""
    return answers(reload=ReloadStatus(pid=77, started_at=150.0, snapshot=7, **changes))


def test_all_is_well():
    """One figure says so, and the configuration is known by its hash."""
    found = values(observations(answers=reload_answer(version="0.1.0")))

    assert (found["ok"], found["problems"], found["degraded"]) == ({"": 1}, {"": 0}, {"": 0})
    assert found["build_info"] == {'{version="0.1.0"}': 1}
    assert found["configuration_info"] == {'{number="7",sha256="abc"}': 1}
    assert "last_reload_timestamp_seconds" not in found


def test_what_is_wrong_is_counted():
    """A pool without a server, the last good configuration, a damaged file."""
    down = boards.health(verdict=HealthVerdict.DOWN)
    note = DegradedStart(since=1.0, errors=())
    found = values(observations(health=boards.health_board(down), degraded=note, set_aside=("/x.damaged",)))
    assert (found["ok"], found["problems"], found["degraded"]) == ({"": 0}, {"": 1}, {"": 1})
    assert found["files_set_aside"] == {"": 1}
    assert (found["pool_servers"], found["pool_servers_up"]) == ({'{pool="pool"}': 1}, {'{pool="pool"}': 0})


def test_reloads():
    """By result, with the last one, and how long its configuration is obeyed."""
    answers = reload_answer(reloads={"done": 3, "refused": 1}, last=LastReload(at=180.0, ok=False))
    found = values(observations(answers=answers, accepted_at=120.0))

    assert found["reloads_total"] == {'{result="done"}': 3, '{result="refused"}': 1}
    assert found["last_reload_successful"] == {"": 0}
    assert found["reload_retry_pending"] == {"": 0}
    assert found["last_reload_timestamp_seconds"] == {"": 180.0}
    assert found["configuration_age_seconds"] == {"": 80.0}


def test_a_reload_that_is_tried_again():
    """An alert can tell it from one that needs somebody."""
    found = values(observations(answers=reload_answer(again_in=4.0)))
    assert found["reload_retry_pending"] == {"": 1}


def test_take_overs():
    """By result, with the last one that went well."""
    assert values(observations())["take_overs_total"] == {'{result="done"}': 0, '{result="failed"}': 0}
    note = TakeOvers().with_done(TakenOver(when=180.0, version="0.9", pid=7, by="1.0"))
    found = values(observations(take_overs=note))
    assert found["take_overs_total"] == {'{result="done"}': 1, '{result="failed"}': 0}
    assert found["last_take_over_timestamp_seconds"] == {"": 180.0}


def test_without_an_answer_nothing_is_said_of_reloads():
    """Nor of the last one."""
    answers = {name: each for name, each in reload_answer().items() if name != "reload"}
    found = values(observations(answers=answers))
    assert "reloads_total" not in found
    assert "last_reload_successful" not in found


def test_generations():
    """What draining ones hold, and workers that have ended."""
    old = boards.worker(
        generation=1,
        phase=WorkerPhase.DRAINING,
        sessions=3,
        servers=(boards.server_counters(current=3), boards.server_counters("server-1")),
    )
    new = boards.worker(generation=2, sessions=1, compiled=True, servers=(boards.server_counters(current=1),))
    found = values(observations(workers=(old, new), ended={"proxy-api": EndedWorkers(workers=5)}))

    assert found["draining_generations"] == {'{program="proxy-api"}': 1}
    held = '{program="proxy-api",generation="1",pool="pool",server="server-0"}'
    assert found["draining_connections"] == {held: 3}
    assert found["generation_sessions"]['{program="proxy-api",generation="2",phase="accepting"}'] == 1
    assert list(found["generation_compiled"].values()) == [0, 1]
    assert found["workers_ended_total"] == {'{program="proxy-api"}': 5}


def test_connections_by_the_reason_of_their_end():
    """Of living and of ended workers together."""
    worker = boards.worker(reasons={EndReason.COMPLETED: 3, EndReason.DENIED: 2})
    ended = EndedWorkers(workers=1, reasons={"completed": 4})
    found = values(observations(workers=(worker,), ended={"proxy-api": ended}))
    assert found["connection_ends_total"] == {'{reason="completed"}': 7, '{reason="denied"}': 2}


def test_how_long_checks_and_connects_took():
    """A histogram for each pool, of all its servers and all workers."""
    check_times = (1, *NO_CHECKS[1:])
    servers = [
        boards.health(f"server-{number}", check_times=check_times, check_seconds=0.5) for number in range(2)
    ]
    connects = (2,) * (len(CONNECT_BOUNDS) + 1)
    worker = boards.worker(
        pools=(PoolTimes(pool="pool", connects=connects),),
        servers=(structs.replace(boards.server_counters(), connect_seconds=1.5),),
    )
    found = metrics(observations(health=boards.health_board(*servers), workers=(worker, worker)))

    (checks,) = found["check_duration_seconds"].histograms
    assert (checks.counts[:2], checks.sum, checks.labels) == ((2, 0), 1.0, {"pool": "pool"})
    (connected,) = found["connect_duration_seconds"].histograms
    expected = Histogram(
        labels={"pool": "pool"}, bounds=CONNECT_BOUNDS, counts=tuple(2 * each for each in connects), sum=3.0
    )
    assert connected == expected


def test_checks_on_kept_connections():
    """The sum of a pool's servers."""
    servers = [boards.health(f"server-{number}", reused=number) for number in (1, 2)]
    found = values(observations(health=boards.health_board(*servers)))
    assert found["checks_reused_total"] == {'{pool="pool"}': 3}


def test_without_a_health_board_and_a_configuration():
    """Then little is known, and that is said."""
    found = metrics(observations(health=None, snapshot="gone", workers=()), configuration_hash=None)
    assert found["check_duration_seconds"].histograms == []
    assert found["connect_duration_seconds"].histograms == []
    assert "configuration_info" not in found


def vrrp(**changes: object) -> VrrpStatus:
    """Return what vrrp says of one virtual IP that is active here."""
    router = RouterStatus(name="api", state="active", since=100.0, priority=150)
    return VrrpStatus(routers=(replace(router, **changes),))


def with_virtual_ip(status: VrrpStatus | None) -> Observations:
    """Return what is found with a virtual IP in the configuration."""
    return observations(snapshot=snapshot(number=7, virtual_routers=[virtual_router()]), vrrp=status)


def test_virtual_ips():
    """Who is active, and what threatens that."""
    rival = HeardRouterStatus(peer="10.0.0.2", priority=90, last_heard=150.0, state="active")
    found = values(with_virtual_ip(vrrp(heard=(rival,))))

    api = '{virtual_ip="api"}'
    assert (found["virtual_ip_active"], found["virtual_ip_priority"]) == ({api: 1}, {api: 150})
    assert (found["virtual_ip_rivals"], found["virtual_ip_conflicts"]) == ({api: 1}, {api: 0})


def test_what_vrrp_counts_is_that_of_its_board():
    """Which outlives the program; what it answers begins anew."""
    seen = with_virtual_ip(None)
    found = values(replace(seen, vrrp_board=vrrp_board(drops={DropReason.CHECKSUM: 2}, split_brains=1)))

    api = '{virtual_ip="api"}'
    assert found["vrrp_drops_total"] == {'{virtual_ip="api",reason="checksum"}': 2}
    assert (found["vrrp_late_wakeups_total"], found["vrrp_latest_wakeup_seconds"]) == ({"": 4}, {"": 0.02})
    assert (found["virtual_ip_split_brains_total"], found["vrrp_send_errors_total"]) == ({api: 1}, {api: 0})
    assert found["virtual_ip_transitions_total"] == {api: 3}


def test_virtual_ips_of_a_program_that_does_not_answer():
    """Nobody is known to be active."""
    found = values(with_virtual_ip(None))
    assert found["virtual_ip_active"] == {'{virtual_ip="api"}': 0}
    assert (found["virtual_ip_active_elsewhere"], "vrrp_drops_total" in found) == (
        {'{virtual_ip="api"}': 0},
        False,
    )


def test_connections_that_got_no_server():
    """By reason, at 0 for those that have not happened."""
    refused = boards.worker(reasons={EndReason.DENIED: 3, EndReason.COMPLETED: 9})
    found = values(observations(workers=(refused,)))["connections_refused_total"]
    assert (found['{reason="denied"}'], found['{reason="no-server"}']) == (3, 0)
    assert '{reason="completed"}' not in found


def test_the_room_of_the_kernels_table():
    """It is there where the configuration has the kernel track connections."""
    assert "tracked_connections" not in values(observations())
    found = values(observations(connection_room=ConnectionRoom(used=7, limit=100)))
    assert (found["tracked_connections"], found["tracked_connections_limit"]) == ({"": 7}, {"": 100})


def test_sessions_that_stay_have_their_reasons():
    """One sample for each address and reason."""
    left = DepartureStatus(address="192.0.2.1", moved=7, stay={"it connects": 2})
    found = values(observations(answers=answers(migrate=MigrateStatus(departures=(left,)))))
    assert found["staying_sessions"] == {'{address="192.0.2.1",reason="it connects"}': 2}


def test_sessions_that_move_are_counted_by_what_became_of_them():
    """Those given and taken apart, and those that were lost."""
    found = values(observations(answers=answers(migrate=MigrateStatus(given=5, taken=3, lost=2))))
    assert found["migrated_sessions_total"] == {
        '{result="given"}': 5,
        '{result="taken"}': 3,
        '{result="lost"}': 2,
    }


def test_strays_of_shared_addresses():
    """They are counted where there are shared addresses, by what became of them."""
    linger = LingerStatus(program="linger", pid=78, started_at=150.0, snapshot=7)
    assert "linger_strays_total" not in values(observations(answers=answers(linger=linger)))
    shared = replace(linger, shared=(SharedAddress(address="198.51.100.10"),), strays={"led": 7, "asked": 3})
    found = values(observations(answers=answers(linger=shared)))["linger_strays_total"]
    assert found == {'{kind="asked"}': 3, '{kind="led"}': 7}
