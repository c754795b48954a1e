"""The programs in a status, whoever of them can be asked."""

from dataclasses import replace

import pytest
from support.values import boards
from support.values.observations import NAMES, NOW, observations, supervised
from support.values.snapshots import frontend, group, snapshot

from appliance.core.status.assessment import assess
from appliance.core.status.observations import SupervisordNotAsked
from appliance.core.status.status import (
    ProgramState,
    Status,
)
from appliance.model.worker_phases import WorkerPhase
from appliance.wire.lines.reload_status import ReloadStatus
from appliance.wire.lines.status_answer import StatusAnswer

pytestmark = pytest.mark.pure


def state_of(status: Status, name: str) -> ProgramState:
    """Return the state that a status gives to a program."""
    return next(each.state for each in status.programs if each.name == name)


def reason_of(status: Status, name: str) -> str | None:
    """Return what a status says is wrong with a program."""
    return next(each.reason for each in status.programs if each.name == name)


def test_what_a_program_left_behind_is_the_better_reason():
    """A failure file wins over an exit status."""
    down = supervised("proxy-api", ProgramState.BACKOFF, pid=None, reason="exit status 1")
    found = observations(supervised=(down,), failures={"proxy-api": "port 9445 is taken"})
    assert reason_of(assess(found, NOW), "proxy-api") == "port 9445 is taken"


def test_workers_serve_on_without_their_master():
    """A stopped master whose workers accept is reported as such, with its generation."""
    others = (supervised("reload"), supervised("health"))
    found = observations(
        supervised=(*others, supervised("proxy-api", ProgramState.STOPPED, pid=None, started_at=None)),
        answers={name: StatusAnswer() for name in ("reload", "health")},
        workers=(boards.worker(generation=4), boards.worker(generation=3, phase=WorkerPhase.DRAINING)),
    )
    status = assess(found, NOW)
    assert status.problems == ("proxy-api is stopped: its workers continue to serve without it: 1",)
    assert next(each.generation for each in status.programs if each.name == "proxy-api") == 4


def test_a_program_that_answers_has_started():
    """It is no longer starting, though supervisord says so for a second more."""
    found = observations(
        supervised=(supervised("reload", ProgramState.STARTING), supervised("health", ProgramState.STARTING)),
        answers={"reload": ReloadStatus(pid=5)},
    )
    status = assess(found, NOW)
    assert state_of(status, "reload") is ProgramState.RUNNING
    assert state_of(status, "health") is ProgramState.STARTING
    assert "health is starting" in status.problems
    assert not any(each.startswith("reload") for each in status.problems)


def test_without_supervisord_the_programs_speak_for_themselves():
    """A program that answers runs, one that does not is gone."""
    found = observations(
        supervised="no such file", answers={"reload": ReloadStatus(pid=5), "proxy-api": StatusAnswer(pid=6)}
    )
    status = assess(found, NOW)
    assert status.supervisor == "no such file"
    assert state_of(status, "reload") is ProgramState.RUNNING
    assert state_of(status, "health") is ProgramState.GONE
    assert status.problems == ("supervisord does not answer: no such file", "health is gone")
    assert {each.name: each.pid for each in status.programs} == {"reload": 5, "health": None, "proxy-api": 6}


def test_who_may_not_ask_supervisord_sees_no_problem_in_that():
    """The programs say that they run; one that does not is still gone."""
    asked = observations(supervised=SupervisordNotAsked.PERMISSION)
    assert (assess(asked, NOW).problems, assess(asked, NOW).supervisor) == (
        (),
        "not asked: permission denied",
    )
    lacking = replace(asked, answers={"reload": ReloadStatus(pid=5), "proxy-api": StatusAnswer(pid=6)})
    assert assess(lacking, NOW).problems == ("health is gone",)
    nothing = replace(asked, answers={}, workers=())
    assert assess(nothing, NOW).problems == ("the appliance does not run: not asked: permission denied",)


def test_programs_that_are_not_needed_may_be_down():
    """A stopped proxy without a group, and a stranger's program, are shown and are no problem."""
    extra = (supervised("proxy-ingress", ProgramState.STOPPED), supervised("master-0", ProgramState.EXITED))
    found = observations(supervised=(*map(supervised, NAMES), *extra))
    status = assess(found, NOW)
    assert status.ok
    assert [each.name for each in status.programs if not each.expected] == ["master-0", "proxy-ingress"]


def test_workers_are_counted():
    """A proxy shows how many workers accept, other programs have none."""
    draining = boards.worker(generation=1, phase=WorkerPhase.DRAINING)
    status = assess(observations(workers=(boards.worker(), boards.worker(index=1), draining)), NOW)
    assert {each.name: each.workers for each in status.programs} == {
        "reload": None,
        "health": None,
        "proxy-api": 2,
    }


def test_without_pools_health_is_not_expected():
    """A configuration that only responds needs no prober."""
    responder = frontend("ready", respond="/ready", pool=None)
    found = observations(
        snapshot=snapshot(groups=[group(frontends=[responder])], pools=[]),
        supervised=tuple(map(supervised, ("reload", "proxy-api"))),
    )
    status = assess(found, NOW)
    assert [each.name for each in status.programs if each.expected] == ["reload", "proxy-api"]
