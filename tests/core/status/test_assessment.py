"""A status is made from whatever was found."""

from dataclasses import replace

import pytest
from support.values import boards
from support.values.snapshots import frontend, group, pool, server, snapshot, virtual_router

from appliance.core.status.assessment import (
    Observations,
    StatusAnswer,
    SupervisedProgram,
    SupervisordNotAsked,
    assess,
)
from appliance.core.status.status import (
    DegradedStart,
    GenerationPhase,
    ProgramState,
    ServerConnections,
    Status,
)
from appliance.core.status.vrrp_status import RouterStatus, VrrpStatus
from appliance.model.check_results import CheckResult
from appliance.model.end_reasons import EndReason
from appliance.model.guest.report import GuestProblem, GuestReport, Origin
from appliance.model.server_states import AdminState, HealthVerdict, ServerState
from appliance.model.worker_phases import WorkerPhase
from appliance.wire.lines.control import AnswerProblem

pytestmark = pytest.mark.pure

NOW = 200.0
NAMES = ("reload", "health", "proxy-api")


def supervised(name: str, state: ProgramState = ProgramState.RUNNING, **changes: object) -> SupervisedProgram:
    """Return a program that runs for 50 s."""
    running = SupervisedProgram(name=name, state=state, pid=77, started_at=150.0, reason=None)
    return replace(running, **changes)


def evidence(**changes: object) -> Observations:
    """Return what is found where all is well."""
    found = Observations(
        snapshot=snapshot(number=7),
        supervised=tuple(map(supervised, NAMES)),
        said={name: StatusAnswer(pid=77, started_at=150.0, snapshot=7) for name in NAMES},
        health=boards.health_board(boards.health()),
        workers=(boards.worker(),),
        failures={},
        degraded=None,
    )
    return replace(found, **changes)


def state_of(status: Status, name: str) -> ProgramState:
    """Return the state that a status gives to a program."""
    return next(each.state for each in status.programs if each.name == name)


def reason_of(status: Status, name: str) -> str | None:
    """Return what a status says is wrong with a program."""
    return next(each.reason for each in status.programs if each.name == name)


def test_all_is_well():
    """With everything running and a server up there is no problem."""
    status = assess(evidence(), NOW)
    assert status.ok
    assert status.problems == ()
    assert [each.name for each in status.programs] == list(NAMES)
    assert {each.uptime for each in status.programs} == {50.0}
    assert status.configuration == 7


def test_a_program_that_supervisord_gave_up_is_a_problem_with_its_reason():
    """Exit codes and spawn errors come from supervisord."""
    down = supervised("health", ProgramState.FATAL, pid=None, reason="exit status 2")
    said = {name: StatusAnswer() for name in ("reload", "proxy-api")}
    found = evidence(supervised=(supervised("reload"), down, supervised("proxy-api")), said=said)
    status = assess(found, NOW)
    assert status.problems == ("health is fatal: exit status 2",)


def test_what_a_program_left_behind_is_the_better_reason():
    """A failure file wins over an exit status."""
    down = supervised("proxy-api", ProgramState.BACKOFF, pid=None, reason="exit status 1")
    found = evidence(supervised=(down,), failures={"proxy-api": "port 9445 is taken"})
    assert reason_of(assess(found, NOW), "proxy-api") == "port 9445 is taken"


def test_workers_serve_on_without_their_master():
    """A stopped master whose workers accept is reported as such, with its generation."""
    others = (supervised("reload"), supervised("health"))
    found = evidence(
        supervised=(*others, supervised("proxy-api", ProgramState.STOPPED, pid=None, started_at=None)),
        said={name: StatusAnswer() for name in ("reload", "health")},
        workers=(boards.worker(generation=4), boards.worker(generation=3, phase=WorkerPhase.DRAINING)),
    )
    status = assess(found, NOW)
    assert status.problems == ("proxy-api is stopped: its workers serve on without it: 1",)
    assert next(each.generation for each in status.programs if each.name == "proxy-api") == 4


def test_without_supervisord_the_programs_speak_for_themselves():
    """A program that answers runs, one that does not is gone."""
    found = evidence(
        supervised="no such file", said={"reload": StatusAnswer(pid=5), "proxy-api": StatusAnswer(pid=6)}
    )
    status = assess(found, NOW)
    assert status.supervisor == "no such file"
    assert state_of(status, "reload") is ProgramState.RUNNING
    assert state_of(status, "health") is ProgramState.GONE
    assert status.problems == ("supervisord does not answer: no such file", "health is gone")
    assert {each.name: each.pid for each in status.programs} == {"reload": 5, "health": None, "proxy-api": 6}


def test_who_may_not_ask_supervisord_sees_no_problem_in_that():
    """The programs say that they run; one that does not is still gone."""
    asked = evidence(supervised=SupervisordNotAsked.PERMISSION)
    assert (assess(asked, NOW).problems, assess(asked, NOW).supervisor) == (
        (),
        "not asked: permission denied",
    )
    lacking = replace(asked, said={"reload": StatusAnswer(pid=5), "proxy-api": StatusAnswer(pid=6)})
    assert assess(lacking, NOW).problems == ("health is gone",)
    nothing = replace(asked, said={}, workers=())
    assert assess(nothing, NOW).problems == ("the appliance does not run: not asked: permission denied",)


def test_a_running_program_that_does_not_answer_is_a_problem():
    """Running is not enough: it must answer."""
    found = evidence(said={name: StatusAnswer() for name in ("reload", "proxy-api")})
    assert assess(found, NOW).problems == ("health is running: does not answer on its control socket",)


def test_a_reload_socket_that_is_not_listened_on_is_a_problem():
    """Whoever writes there is not heard, which `reload` says when it is asked."""
    said = {name: StatusAnswer() for name in NAMES}
    said["reload"] = StatusAnswer(socket_failures={"/shared/reload": "exists and is not a socket"})
    status = assess(evidence(said=said), NOW)
    assert status.problems == ("reload socket /shared/reload: exists and is not a socket",)


def test_what_cannot_be_written_is_a_problem():
    """A later start may want it, and somebody has to make room."""
    said = {name: StatusAnswer() for name in NAMES}
    said["reload"] = StatusAnswer(not_kept={"/var/lib/appliance/last-good.json": "No space left on device"})
    status = assess(evidence(said=said), NOW)
    assert status.problems == (
        "reload cannot write /var/lib/appliance/last-good.json: No space left on device",
    )


def test_a_refused_reload_is_a_problem_with_its_errors():
    """Until a later one succeeds the appliance obeys something else than the file."""
    said = {name: StatusAnswer() for name in NAMES}
    errors = (
        AnswerProblem(message="unknown key `a`", path="a", line=3),
        AnswerProblem(message="c.yaml: is a FIFO"),
    )
    said["reload"] = StatusAnswer(refused=errors)
    status = assess(evidence(said=said), NOW)
    assert status.problems == (
        "the last reload was refused: line 3: a: unknown key `a`",
        "the last reload was refused: c.yaml: is a FIFO",
    )


def test_what_was_set_aside_is_shown_and_no_problem():
    """It is for somebody to look at; the appliance goes on without."""
    status = assess(evidence(set_aside=("/var/lib/appliance/last-good.json.damaged",)), NOW)
    assert status.ok
    assert status.set_aside == ("/var/lib/appliance/last-good.json.damaged",)


def test_a_proxy_without_accepting_workers_is_a_problem():
    """A master that runs proves nothing without a worker that accepts."""
    status = assess(evidence(workers=(boards.worker(phase=WorkerPhase.READY),)), NOW)
    assert status.problems == ("proxy-api is running: no worker of it accepts connections",)
    assert [each.phase for each in status.generations] == [GenerationPhase.READY]


def test_programs_that_are_not_needed_may_be_down():
    """A stopped proxy without a group, and a stranger's program, are shown and are no problem."""
    extra = (supervised("proxy-ingress", ProgramState.STOPPED), supervised("master-0", ProgramState.EXITED))
    found = evidence(supervised=(*map(supervised, NAMES), *extra))
    status = assess(found, NOW)
    assert status.ok
    assert [each.name for each in status.programs if not each.expected] == ["master-0", "proxy-ingress"]


def test_where_nothing_runs_no_server_is_up():
    """Boards tell of a time that is over: one problem says so, and servers are unknown."""
    found = evidence(supervised="no such file", said={}, workers=())
    status = assess(found, NOW)
    assert status.problems == ("the appliance does not run: no such file",)
    assert {server.state for pool in status.pools for server in pool.servers} == {None}


def test_a_full_frontend_is_a_problem():
    """Who connects now waits in the backlog, which nothing else shows."""
    busy = boards.worker(frontends=(boards.frontend_counters("frontend", current=600),))
    status = assess(evidence(workers=(busy, replace(busy, index=1))), NOW)
    assert status.problems == ("frontend frontend is full: 1200 of 1000 connections",)
    assert [each.full for each in status.frontends] == [True]


def test_workers_are_counted():
    """A proxy shows how many workers accept, other programs have none."""
    draining = boards.worker(generation=1, phase=WorkerPhase.DRAINING)
    status = assess(evidence(workers=(boards.worker(), boards.worker(index=1), draining)), NOW)
    assert {each.name: each.workers for each in status.programs} == {
        "reload": None,
        "health": None,
        "proxy-api": 2,
    }


def test_the_version_is_that_of_what_runs():
    """The command may be newer than the programs: `reload` says what they are."""
    said = {name: StatusAnswer() for name in NAMES}
    said["reload"] = StatusAnswer(version="9.9")
    assert assess(evidence(said=said), NOW).version == "9.9"


def test_without_pools_health_is_not_expected():
    """A configuration that only responds needs no prober."""
    responder = frontend("ready", respond="/ready", pool=None)
    found = evidence(
        snapshot=snapshot(groups=[group(frontends=[responder])], pools=[]),
        supervised=tuple(map(supervised, ("reload", "proxy-api"))),
    )
    status = assess(found, NOW)
    assert [each.name for each in status.programs if each.expected] == ["reload", "proxy-api"]


def test_without_a_snapshot_only_programs_are_shown():
    """Nothing is known of pools where the accepted configuration cannot be read."""
    status = assess(evidence(snapshot="no such file", workers=()), NOW)
    assert status.problems[0] == "no accepted configuration: no such file"
    assert (status.configuration, status.frontends, status.pools) == (None, (), ())


def test_counters_are_summed_over_workers_and_generations():
    """A server's connections are those of every worker that lives."""
    workers = tuple(
        boards.worker(
            generation=generation,
            index=index,
            frontends=(boards.frontend_counters(current=1, total=10), boards.frontend_counters("other")),
            servers=(boards.server_counters(current=1, total=5),),
            reasons={EndReason.COMPLETED: 4, EndReason.DENIED: 0},
        )
        for generation, index in ((1, 0), (1, 1), (2, 0))
    )
    ingress = boards.worker(program="proxy-ingress", frontends=(boards.frontend_counters(total=99),))
    status = assess(evidence(workers=(*workers, ingress)), NOW)
    [front] = status.frontends
    assert (front.current, front.total, front.denied, front.failed) == (3, 30, 3, 6)
    assert (front.bytes_in, front.bytes_out) == (300, 1200)
    [pool_status] = status.pools
    [member] = pool_status.servers
    assert (member.current, member.total, member.failed, member.queued) == (3, 15, 3, 6)
    assert (pool_status.current, pool_status.total, pool_status.queued) == (3, 15, 6)
    assert status.ended == {"completed": 12}


def test_draining_generations_say_what_they_hold():
    """A draining generation has its deadline, its sessions and the servers they are on."""
    draining = [
        boards.worker(
            generation=3,
            index=index,
            pid=50 + index,
            phase=WorkerPhase.DRAINING,
            drain_deadline=260.0,
            sessions=2,
            servers=(boards.server_counters(current=2), boards.server_counters("idle")),
        )
        for index in (0, 1)
    ]
    status = assess(evidence(workers=(boards.worker(generation=4), *draining)), NOW)
    old, new = status.generations
    assert (old.phase, new.phase) == (GenerationPhase.DRAINING, GenerationPhase.ACCEPTING)
    assert (old.sessions, old.drain_deadline, old.pids) == (4, 260.0, (50, 51))
    assert old.holds == (ServerConnections(pool="pool", server="server-0", connections=4),)
    assert new.drain_deadline is None


@pytest.mark.parametrize(
    ("verdict", "admin", "state"),
    [
        (HealthVerdict.UP, AdminState.READY, ServerState.UP),
        (HealthVerdict.DOWN, AdminState.READY, ServerState.DOWN),
        (HealthVerdict.UP, AdminState.DRAIN, ServerState.DRAIN),
        (HealthVerdict.UP, AdminState.MAINT, ServerState.MAINT),
        (HealthVerdict.UNKNOWN, AdminState.READY, ServerState.CHECKING),
    ],
)
def test_only_a_server_that_is_up_keeps_a_pool_well(
    verdict: HealthVerdict, admin: AdminState, state: ServerState
):
    """A pool in use whose only server is anything but up is a problem."""
    found = evidence(health=boards.health_board(boards.health(verdict=verdict, admin=admin)))
    status = assess(found, NOW)
    assert status.pools[0].servers[0].state is state
    assert status.problems == (() if state is ServerState.UP else ("pool pool has no server up",))


def test_a_pool_that_nobody_uses_may_be_down():
    """Only pools that a frontend names, as its pool or as what it needs, count."""
    needing = frontend("monitor", respond="/monitor", pool=None, needs="needed")
    found = evidence(
        snapshot=snapshot(
            groups=[group(frontends=[needing])],
            pools=[pool("needed"), pool("unused"), pool("empty", servers=[])],
        )
    )
    status = assess(found, NOW)
    assert {each.name: each.in_use for each in status.pools} == {
        "needed": True,
        "unused": False,
        "empty": False,
    }
    assert status.problems == ("pool needed has no server up",)


def test_a_server_shows_its_last_check():
    """Result, status, duration, age and weights are those of the prober's board."""
    member = server("server-0", weight=10, host="::1", port=6443, backup=True)
    known = boards.health(weight=2.5, host="", result=CheckResult.L4CON, status=0, detail="refused")
    found = evidence(snapshot=snapshot(pools=[pool(servers=[member])]), health=boards.health_board(known))
    shown = assess(found, NOW).pools[0].servers[0]
    assert (shown.address, shown.resolved, shown.backup) == ("[::1]:6443", None, True)
    assert (shown.weight, shown.effective_weight, shown.since) == (10, 2.5, 100.0)
    assert shown.check is not None
    assert (shown.check.result, shown.check.status, shown.check.detail) == (
        CheckResult.L4CON,
        None,
        "refused",
    )


def test_a_server_that_was_never_checked_has_no_check():
    """Before the first check, and without a board, there is nothing to show."""
    unchecked = boards.health(verdict=HealthVerdict.UNKNOWN, result=CheckResult.UNCHECKED)
    for board in (boards.health_board(unchecked), None):
        shown = assess(evidence(health=board), NOW).pools[0].servers[0]
        assert shown.check is None
        assert shown.state is ServerState.CHECKING


def test_a_degraded_start_is_passed_on():
    """The errors that led to it stay readable, and it is no problem of its own."""
    note = DegradedStart(since=100.0, errors=(AnswerProblem(message="unknown key", line=3),))
    status = assess(evidence(degraded=note), NOW)
    assert status.degraded == note
    assert status.ok


def with_virtual_ip(vrrp: VrrpStatus | None, *, runs: bool = True) -> Observations:
    """Return what is found where there is a virtual IP besides."""
    programs = (*NAMES, "vrrp") if runs else NAMES
    return evidence(
        snapshot=snapshot(number=7, virtual_routers=[virtual_router("api")]),
        supervised=tuple(map(supervised, programs)),
        said={name: StatusAnswer(pid=77, started_at=150.0, snapshot=7) for name in programs},
        vrrp=vrrp,
    )


def test_without_vrrp_nothing_is_known_of_virtual_ips():
    """The program that is not there is the problem; its virtual IPs are shown without a state."""
    status = assess(with_virtual_ip(None, runs=False), NOW)
    [shown] = status.virtual_ips
    assert (shown.state, shown.active, shown.priority, shown.yielded) == (None, None, None, False)
    assert status.problems == ("vrrp is gone",)


def test_trouble_with_virtual_ips_is_a_problem():
    """What vrrp lacks and what is wrong with a virtual IP make the answer a no."""
    said = VrrpStatus(missing=("CAP_NET_RAW",), routers=(RouterStatus(name="api", state="fault"),))
    status = assess(with_virtual_ip(said), NOW)
    assert status.problems == ("vrrp lacks CAP_NET_RAW: no virtual IP can be held here",)


def test_wrong_properties_of_a_virtual_machine_are_problems():
    """An administrator learns of them where the state is looked up; without any there is nothing to say."""
    problems = (GuestProblem(key="dns", message="no address"), GuestProblem(message="edited"))
    report = GuestReport(origin=Origin.ISO, applied_at=1.0, problems=problems)
    status = assess(evidence(guest=report), NOW)
    assert status.problems == ("property DNS servers (dns): no address", "edited")
    assert status.guest is report
    assert assess(evidence(guest=replace(report, problems=())), NOW).ok
