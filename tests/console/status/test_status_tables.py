"""A status as tables."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console
from support.values import boards
from support.values.snapshots import frontend, group, pool, redirect, server, snapshot, virtual_router

from appliance.console.status.status_tables import summary, tables
from appliance.core.rollout.timing import NO_DEADLINE
from appliance.core.status.assessment import assess
from appliance.core.status.observations import Observations, SupervisedProgram
from appliance.core.status.status import ProgramState
from appliance.model.check_results import CheckResult
from appliance.model.server_states import HealthVerdict
from appliance.model.take_overs import FailedTakeOver, TakenOver, TakeOvers
from appliance.model.worker_phases import WorkerPhase
from appliance.wire.lines.redirect_status import RedirectedFrontend, RedirectStatus
from appliance.wire.lines.reload_status import ReloadStatus
from appliance.wire.lines.vrrp_status import RouterStatus, VrrpStatus

pytestmark = pytest.mark.pure

_EVIDENCE = Observations(
    snapshot=snapshot(cluster="ocp4", pools=[pool(servers=[server(weight=10, backup=True)])]),
    supervised=(
        SupervisedProgram(name="reload", state=ProgramState.RUNNING, pid=12, started_at=100.0, reason=None),
    ),
    answers={"reload": ReloadStatus(snapshot=1)},
    health=boards.health_board(boards.health(weight=2.5)),
    workers=(boards.worker(frontends=(boards.frontend_counters(total=3000),)),),
    failures={},
    degraded=None,
)


def drawn(observations: Observations, *, width: int = 160) -> list[str]:
    """Return the lines of the tables."""
    output = StringIO()
    Console(file=output, width=width).print(
        tables(assess(observations, 200.0), supervisorctl="supervisorctl")
    )
    return [line.rstrip() for line in output.getvalue().splitlines()]


def row(lines: list[str], start: str) -> list[str]:
    """Return the words of the row that starts so."""
    return next(line for line in lines if line.startswith(start)).split()


def test_programs():
    """A program has its state, number, age and configuration; the cluster stands above."""
    lines = drawn(_EVIDENCE)
    assert row(lines, "reload") == ["reload", "running", "12", "1m", "40s", "-", "-", "1"]
    assert "ocp4: configuration 1 from appliance.yaml" in " ".join(lines)
    assert "! health is gone" in lines


def test_take_overs():
    """From whom this one took over, and that a later one failed, but not that an earlier one did."""
    done = TakenOver(when=100.0, version="0.9", pid=7, by="1.0")
    failed = FailedTakeOver(when=150.0, version="1.1", pid=8, reason="it has ended")
    lines = drawn(replace(_EVIDENCE, take_overs=TakeOvers().with_done(done).with_failed(failed)))
    assert "taken over 1m 40s ago from version 0.9, process 7" in lines
    assert "version 1.1 could not take over 50s ago: it has ended" in lines
    unnamed = FailedTakeOver(when=150.0, version="", pid=0, reason="not found")
    lines = drawn(replace(_EVIDENCE, take_overs=TakeOvers().with_failed(unnamed)))
    assert "a release could not take over 50s ago: not found" in lines
    after = TakeOvers().with_failed(failed).with_done(TakenOver(when=160.0, version="0.9", pid=7, by="1.1"))
    assert not [each for each in drawn(replace(_EVIDENCE, take_overs=after)) if "could not" in each]
    assert not [each for each in drawn(_EVIDENCE) if "take" in each]


def test_what_moves_the_connections():
    """The first line says whether the data path is compiled; while generations change it may be both."""
    python, compiled = boards.worker(), boards.worker(generation=2, compiled=True)
    for workers, said in (
        ((python,), "data path in Python"),
        ((compiled,), "data path compiled"),
        ((python, compiled), "data path compiled and in Python"),
    ):
        assert f"ocp4: configuration 1 from appliance.yaml, {said}" in drawn(
            replace(_EVIDENCE, workers=workers)
        )
    assert "data path" not in "\n".join(drawn(replace(_EVIDENCE, workers=())))


def test_servers():
    """A server on its way up shows both weights; the last check has result, duration and detail."""
    words = row(drawn(_EVIDENCE), "pool/server-0")
    assert words == [
        "pool/server-0", "(backup)", "127.0.0.1:8080", "up", "1m", "40s", "L7OK/200", "4ms", "OK", "2.5",
        "of", "10", "0", "0", "0", "0",
    ]  # fmt: skip


def test_unchecked_and_refusing_servers():
    """Without a check there is a dash, without a status the result alone."""
    refusing = boards.health(verdict=HealthVerdict.DOWN, result=CheckResult.L4CON, status=0, detail="refused")
    lines = drawn(replace(_EVIDENCE, health=boards.health_board(refusing)))
    assert "L4CON 4ms refused" in " ".join(row(lines, "pool/server-0"))
    assert "checking" in row(drawn(replace(_EVIDENCE, health=None)), "pool/server-0")


def test_frontends():
    """Bytes have units."""
    assert row(drawn(_EVIDENCE), "frontend  ")
    assert row(drawn(_EVIDENCE), "frontend ")[-2:] == ["in", "out"]
    assert any(line.startswith("frontend") and line.endswith("30.0kB  120kB") for line in drawn(_EVIDENCE))


def test_draining_generations():
    """What drains shows when it is cut, and what it still holds."""
    draining = boards.worker(
        generation=3,
        phase=WorkerPhase.DRAINING,
        sessions=4,
        drain_deadline=230.0,
        servers=(boards.server_counters(current=4),),
    )
    lines = drawn(replace(_EVIDENCE, workers=(draining,)))
    assert row(lines, "proxy-api  ")[:1] == ["proxy-api"]
    assert any(line.split() == ["proxy-api", "3", "4", "30s", "pool/server-0", "4"] for line in lines)


def test_a_soft_stop_never_cuts():
    """What has no deadline says so."""
    draining = boards.worker(
        generation=3, phase=WorkerPhase.DRAINING, sessions=4, drain_deadline=200.0 + NO_DEADLINE
    )
    assert any("never" in line.split() for line in drawn(replace(_EVIDENCE, workers=(draining,))))


def test_programs_that_are_not_needed_are_said_to_be():
    """A stopped program without a task is no alarm."""
    idle = SupervisedProgram(
        name="proxy-ingress", state=ProgramState.STOPPED, pid=None, started_at=None, reason=None
    )
    lines = drawn(replace(_EVIDENCE, supervised=(*_EVIDENCE.supervised, idle)))
    assert row(lines, "proxy-ingress")[1:3] == ["not", "needed"]


def test_a_narrow_terminal_has_one_line_for_a_server():
    """Columns are cut rather than folded, so that a table keeps its height."""
    for width in (70, 160):
        lines = drawn(_EVIDENCE, width=width)
        line = next(number for number, text in enumerate(lines) if text.startswith("poo"))
        assert lines[line + 1] == ""


def test_redirects():
    """A redirect has its addresses, its state since when, and the reason; without an answer it has none."""
    given = snapshot(groups=[group("api", frontends=[frontend("k", redirect=redirect())])])
    told = RedirectedFrontend(name="api/k", state="on", since=140.0, reason="masters: 1 of 1 servers up")
    found = replace(_EVIDENCE, snapshot=given, answers={"redirect": RedirectStatus(redirects=(told,))})
    shown = ["api/k", "10.0.0.200:6443", "on", "1m", "masters:", "1", "of", "1", "servers", "up"]
    assert row(drawn(found), "api/k") == shown
    assert row(drawn(replace(found, answers={})), "api/k")[2:] == ["unknown", "-"]


def test_virtual_ips():
    """A virtual IP has its state and who is active; unknown where vrrp does not answer."""
    routers = [virtual_router("api"), virtual_router("b")]
    said = RouterStatus(name="api", state="backup", since=100.0, priority=90, yielded=True)
    configured = replace(_EVIDENCE, snapshot=snapshot(virtual_routers=routers))
    lines = drawn(replace(configured, answers={"vrrp": VrrpStatus(routers=(said,))}))
    assert row(lines, "api  ")[3:] == ["51", "backup", "(moved", "away)", "1m", "40s", "90", "-"]
    assert row(lines, "b  ")[3:] == ["51", "unknown", "-", "-", "-"]


def test_at_80_columns_every_header_is_a_word():
    """A terminal of the usual size shows fewer columns, and those whole."""
    lines = drawn(_EVIDENCE, width=80)
    assert row(lines, "server ") == [
        "server",
        "address",
        "state",
        "since",
        "last",
        "check",
        "current",
    ]
    assert row(lines, "program ")[:2] == ["program", "state"]
    assert all(len(line) <= 80 for line in lines)


def test_a_summary_counts():
    """A few lines say what runs, what is up and how much is going on."""
    output = StringIO()
    Console(file=output, width=80).print(summary(assess(_EVIDENCE, 200.0), supervisorctl="supervisorctl"))
    lines = output.getvalue().splitlines()
    assert lines[-1].startswith("1 programs run, 1 of 1 servers are up, ")
    assert len(lines) <= 6


def test_what_is_left_to_haproxy():
    """It stands above the tables: nobody else listens there."""
    left = replace(_EVIDENCE, snapshot=replace(snapshot(), left_out=("the frontend `web` is left",)))
    assert "  the frontend `web` is left" in drawn(left)
