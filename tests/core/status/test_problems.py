"""What a status says is wrong, and what it does not."""

from dataclasses import replace

import pytest
from support.values import boards
from support.values.observations import NAMES, NOW, observations, supervised
from support.values.snapshots import snapshot, virtual_router
from support.values.statuses import discovery

from appliance.core.status.assessment import assess
from appliance.core.status.observations import Observations
from appliance.core.status.status import (
    DegradedStart,
    GenerationPhase,
    ProgramState,
)
from appliance.model.guest.report import GuestProblem, GuestReport, Origin
from appliance.model.worker_phases import WorkerPhase
from appliance.wire.lines.control import AnswerProblem
from appliance.wire.lines.forward_status import ForwardedGroup, ForwardStatus, SyncStatus
from appliance.wire.lines.linger_status import LingerStatus
from appliance.wire.lines.reload_status import ReloadStatus
from appliance.wire.lines.status_answer import StatusAnswer
from appliance.wire.lines.vrrp_status import RouterStatus, VrrpStatus

pytestmark = pytest.mark.pure


def test_a_program_that_supervisord_gave_up_is_a_problem_with_its_reason():
    """Exit codes and spawn errors come from supervisord."""
    down = supervised("health", ProgramState.FATAL, pid=None, reason="exit status 2")
    answers = {name: StatusAnswer() for name in ("reload", "proxy-api")}
    found = observations(supervised=(supervised("reload"), down, supervised("proxy-api")), answers=answers)
    status = assess(found, NOW)
    assert status.problems == ("health is fatal: exit status 2",)


def test_a_running_program_that_does_not_answer_is_a_problem():
    """Running is not enough: it must answer."""
    found = observations(answers={name: StatusAnswer() for name in ("reload", "proxy-api")})
    assert assess(found, NOW).problems == ("health is running: does not answer on its control socket",)


def test_a_reload_socket_that_is_not_listened_on_is_a_problem():
    """Whoever writes there is not heard, which `reload` says when it is asked."""
    answers = {name: StatusAnswer() for name in NAMES}
    answers["reload"] = ReloadStatus(socket_failures={"/shared/reload": "exists and is not a socket"})
    status = assess(observations(answers=answers), NOW)
    assert status.problems == ("reload socket /shared/reload: exists and is not a socket",)


def test_what_cannot_be_written_is_a_problem():
    """A later start may want it, and somebody has to make room."""
    answers = {name: StatusAnswer() for name in NAMES}
    answers["reload"] = ReloadStatus(
        not_kept={"/var/lib/appliance/last-good.json": "No space left on device"}
    )
    status = assess(observations(answers=answers), NOW)
    assert status.problems == (
        "reload cannot write /var/lib/appliance/last-good.json: No space left on device",
    )


def test_a_refused_reload_is_a_problem_with_its_errors():
    """Until a later one succeeds the appliance obeys something else than the file."""
    answers = {name: StatusAnswer() for name in NAMES}
    errors = (
        AnswerProblem(message="unknown key `a`", path="a", line=3),
        AnswerProblem(message="c.yaml: is a FIFO"),
    )
    answers["reload"] = ReloadStatus(refused=errors)
    status = assess(observations(answers=answers), NOW)
    assert status.problems == (
        "the last reload was refused: line 3: a: unknown key `a`",
        "the last reload was refused: c.yaml: is a FIFO",
    )


def test_a_reload_that_is_tried_again_is_told_as_that():
    """A problem as well: the appliance obeys something else than the file until a try comes through."""
    answers = {name: StatusAnswer() for name in NAMES}
    answers["reload"] = ReloadStatus(refused=(AnswerProblem(message="health: it is gone"),), again_in=4.0)
    status = assess(observations(answers=answers), NOW)
    assert status.problems == ("the last reload was refused for now, and is tried again: health: it is gone",)


def test_what_was_set_aside_is_shown_and_no_problem():
    """It is for somebody to look at; the appliance goes on without."""
    status = assess(observations(set_aside=("/var/lib/appliance/last-good.json.damaged",)), NOW)
    assert status.ok
    assert status.set_aside == ("/var/lib/appliance/last-good.json.damaged",)


def test_a_proxy_without_accepting_workers_is_a_problem():
    """A master that runs proves nothing without a worker that accepts."""
    status = assess(observations(workers=(boards.worker(phase=WorkerPhase.READY),)), NOW)
    assert status.problems == ("proxy-api is running: none of its workers accepts connections",)
    assert [each.phase for each in status.generations] == [GenerationPhase.READY]


def test_where_nothing_runs_no_server_is_up():
    """Boards tell of a time that is over: one problem says so, and servers are unknown."""
    found = observations(supervised="no such file", answers={}, workers=())
    status = assess(found, NOW)
    assert status.problems == ("the appliance does not run: no such file",)
    assert {server.state for pool in status.pools for server in pool.servers} == {None}


def test_a_full_frontend_is_a_problem():
    """Who connects now waits in the backlog, which nothing else shows."""
    busy = boards.worker(frontends=(boards.frontend_counters("frontend", current=600),))
    status = assess(observations(workers=(busy, replace(busy, index=1))), NOW)
    assert status.problems == ("frontend frontend is full: 1200 of 1000 connections",)
    assert [each.full for each in status.frontends] == [True]


def with_virtual_ip(vrrp: VrrpStatus | None, *, runs: bool = True) -> Observations:
    """Return what is found where there is a virtual IP besides."""
    programs = (*NAMES, "vrrp") if runs else NAMES
    return observations(
        snapshot=snapshot(number=7, virtual_routers=[virtual_router("api")]),
        supervised=tuple(map(supervised, programs)),
        answers={name: StatusAnswer(pid=77, started_at=150.0, snapshot=7) for name in programs},
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
    status = assess(observations(guest=report), NOW)
    assert status.problems == ("property DNS servers (dns): no address", "edited")
    assert status.guest is report
    assert assess(observations(guest=replace(report, problems=())), NOW).ok


@pytest.mark.parametrize(
    ("errors", "said"),
    [
        (
            (
                AnswerProblem(message="/etc/haproxy/haproxy.cfg: the file is empty"),
                AnswerProblem(message="no", line=2, source="/k.conf"),
            ),
            "/etc/haproxy/haproxy.cfg: the file is empty; /k.conf line 2: no",
        ),
        (None, "there is none yet"),
    ],
)
def test_what_is_waited_for_is_a_problem(errors: tuple[AnswerProblem, ...] | None, said: str):
    """Before the first good configuration nothing is served; that is no start with a last good one."""
    awaited = replace(snapshot(), groups=(), pools=(), awaited=True)
    degraded = DegradedStart(since=NOW, errors=errors) if errors else None
    found = observations(
        snapshot=awaited,
        supervised=(supervised("reload"),),
        answers={"reload": ReloadStatus()},
        degraded=degraded,
        workers=(),
    )

    status = assess(found, NOW)

    assert status.problems == (f"waits for a first configuration: {said}",)
    assert status.degraded is None


def test_what_discover_calls_a_problem_is_one():
    """A right that is missing, or a list that is not believed; the sources are shown."""
    told = discovery(
        problems=("discover masters: the list is empty: all servers are kept",),
    )
    status = assess(observations(discover=told), NOW)
    assert status.problems == told.problems
    assert status.discovery == ()


def test_virtual_ips_that_move_without_their_connections():
    """What `linger` cannot do is a problem, with its reason."""
    status = assess(observations(linger=LingerStatus(trouble="no reports on port 29446")), NOW)
    assert status.problems == ("virtual IPs move without their connections: no reports on port 29446",)


@pytest.mark.parametrize(
    ("sync", "why"),
    [
        (SyncStatus(state="unsynced", trouble="conntrackd is not installed"), "conntrackd is not installed"),
        (SyncStatus(state="alone"), "nothing is received of another node"),
        (SyncStatus(state="synced"), ""),
    ],
)
def test_connections_that_other_nodes_do_not_learn_are_a_problem(sync: SyncStatus, why: str):
    """With `sync`: conntrackd is in trouble, or nobody is there who learns them."""
    status = assess(observations(forward=ForwardStatus(sync=sync)), NOW)
    assert status.problems == ((f"forwarded connections would end with this node: {why}",) if why else ())


def test_what_the_kernel_does_not_forward_is_a_problem():
    """With what the program `forward` says about it; its figures are those of frontend and server."""
    group = ForwardedGroup(program="proxy-api", frontends=(boards.frontend_counters(total=3),))
    told = ForwardStatus(trouble="no table", groups=(group,), servers=(boards.server_counters(total=3),))
    status = assess(observations(forward=told), NOW)
    assert status.problems == ("connections cannot be forwarded as they should be: no table",)
    usual = assess(observations(), NOW)
    assert status.frontends[0].total == usual.frontends[0].total + 3
    assert status.pools[0].total == usual.pools[0].total + 3


def test_what_is_left_to_haproxy_is_shown_and_no_problem():
    """The operator has said so, and monitoring is to be silent about it."""
    said = ("the frontend `web` is left to HAProxy",)
    status = assess(observations(snapshot=replace(snapshot(), left_out=said)), NOW)
    assert (status.problems, status.left_out) == ((), said)
