"""What is new between two looks."""

from dataclasses import replace

import pytest
from support.values import boards
from support.values.snapshots import snapshot, virtual_router

from appliance.console.status.status_changes import changed_facts, facts
from appliance.core.status.assessment import assess
from appliance.core.status.observations import Observations, SupervisedProgram
from appliance.core.status.status import ProgramState
from appliance.model.check_results import CheckResult
from appliance.model.server_states import HealthVerdict
from appliance.wire.lines.status_answer import StatusAnswer

pytestmark = pytest.mark.pure

_NAMES = ("reload", "health", "proxy-api")
_EVIDENCE = Observations(
    snapshot=snapshot(),
    supervised=tuple(
        SupervisedProgram(name=name, state=ProgramState.RUNNING, pid=1, started_at=1.0, reason=None)
        for name in _NAMES
    ),
    answers={name: StatusAnswer() for name in _NAMES},
    health=boards.health_board(boards.health()),
    workers=(boards.worker(),),
    failures={},
    degraded=None,
)


def test_the_first_look_is_all_news():
    """Everything is said once."""
    lines = list(changed_facts({}, facts(assess(_EVIDENCE, 200.0))))
    assert lines == [
        "configuration: number 1 from appliance.yaml",
        "program reload: running",
        "program health: running",
        "program proxy-api: running",
        "server pool/server-0: up (L7OK/200)",
        "generation proxy-api 1: accepting",
        "appliance: all is well",
    ]


def test_counters_are_no_news():
    """Time and traffic alone change nothing."""
    busy = replace(_EVIDENCE, workers=(boards.worker(servers=(boards.server_counters(total=9),)),))
    assert list(changed_facts(facts(assess(_EVIDENCE, 200.0)), facts(assess(busy, 300.0)))) == []


def test_a_server_that_goes_down_is_news():
    """State and result are said, and what follows from it."""
    down = boards.health(verdict=HealthVerdict.DOWN, result=CheckResult.L4CON, status=0)
    after = replace(_EVIDENCE, health=boards.health_board(down))
    assert list(changed_facts(facts(assess(_EVIDENCE, 200.0)), facts(assess(after, 200.0)))) == [
        "server pool/server-0: down (L4CON)",
        "appliance: pool pool has no server up",
    ]


def test_who_has_an_address_is_news():
    """As the program vrrp reports it; before it answers, nobody knows."""
    after = replace(_EVIDENCE, snapshot=replace(snapshot(), virtual_routers=(virtual_router(),)))
    assert "virtual IP api: unknown" in list(changed_facts({}, facts(assess(after, 200.0))))


def test_what_is_gone_is_news():
    """A generation that has ended, and a server without a check, are said."""
    after = replace(_EVIDENCE, health=None, workers=(boards.worker(generation=2),))
    lines = list(changed_facts(facts(assess(_EVIDENCE, 200.0)), facts(assess(after, 200.0))))
    assert "server pool/server-0: checking" in lines
    assert "generation proxy-api 2: accepting" in lines
    assert "generation proxy-api 1: gone" in lines


def test_a_problem_has_its_reason():
    """Why a program does not run is in its line; without a configuration there is none."""
    failed = replace(_EVIDENCE, snapshot="no such file", failures={"reload": "exit status 1"})
    lines = list(changed_facts({}, facts(assess(failed, 200.0))))
    assert "program reload: running (exit status 1)" in lines
    assert not any(line.startswith("configuration") for line in lines)
