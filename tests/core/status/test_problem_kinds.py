"""Kinds of problems: each has its sentence and its next step, with what is filled in."""

from dataclasses import replace

import msgspec
import pytest
from support.values.observations import NOW, observations

from appliance.core.status.assessment import assess
from appliance.core.status.problem_kinds import ProblemKind, StatusProblem
from appliance.core.status.status import json_schema
from appliance.core.why.explanation import Kind

pytestmark = pytest.mark.pure

_CONTROL = "supervisorctl -s unix:///run/x/supervisor.sock"


@pytest.mark.parametrize("kind", ProblemKind)
def test_sentence_and_next_step_are_filled_in(kind: ProblemKind):
    """Whatever is known of a problem; braces in it are only text."""
    problem = StatusProblem(kind, "{subject}", detail="{detail}")
    for text in (problem, problem.next_step(supervisorctl=_CONTROL)):
        assert text
        assert "{supervisorctl}" not in text


@pytest.mark.parametrize(
    ("kind", "subject", "step"),
    [
        (ProblemKind.POOL_DOWN, "masters", f"`appliance why masters --kind {Kind.POOL}`"),
        (ProblemKind.VIRTUAL_IP, "api", f"`appliance why api --kind {Kind.VIRTUAL_IP}`"),
        (ProblemKind.SHARED_IP, "api", f"`appliance why api --kind {Kind.SHARED_IP}`"),
        (ProblemKind.BGP_SESSION, "tor-a", f"`appliance why tor-a --kind {Kind.NEIGHBOR}`"),
        (ProblemKind.PROGRAM, "health", f"`{_CONTROL} restart health`"),
        (ProblemKind.FRONTEND_FULL, "kube-api", "`appliance sessions --frontend kube-api`"),
    ],
)
def test_a_step_can_be_pasted(kind: ProblemKind, subject: str, step: str):
    """It names what the problem is about, and our socket."""
    assert step in StatusProblem(kind, subject).next_step(supervisorctl=_CONTROL)


def test_json_has_sentences():
    """As its schema says: programs that read the status know no kinds."""
    status = assess(observations(), NOW)
    wrong = replace(status, problems=(StatusProblem(ProblemKind.POOL_DOWN, "masters"),))
    assert msgspec.json.decode(wrong.json())["problems"] == ["pool masters has no server up"]
    schema = json_schema()
    assert schema["$defs"]["Status"]["properties"]["problems"]["items"] == {"type": "string"}  # type: ignore[index]  # of JSON
