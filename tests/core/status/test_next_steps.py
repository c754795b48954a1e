"""Every problem of a status has a next step."""

import ast
import inspect
from collections.abc import Iterator
from types import ModuleType

import pytest

from appliance.core.checks import stale_verdicts
from appliance.core.status import problems, vrrp_troubles
from appliance.core.status.next_steps import next_step
from appliance.discovery import program as discover
from appliance.discovery import watched_source

pytestmark = pytest.mark.pure

_CONTROL = "supervisorctl -s unix:///run/x/supervisor.sock"

_BEFORE = {vrrp_troubles: "virtual IP x ", watched_source: "discover x: "}
"""What stands before the sentences that are parts of one."""

_HELPERS = {"located", "_wrong_properties"}


def _sentences(module: ModuleType) -> Iterator[str]:
    """Yield what each function of a module yields or returns as a sentence, `x` for what is filled in."""
    for function in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(function, ast.FunctionDef) and function.name not in _HELPERS:
            for statement in ast.walk(function):
                if isinstance(statement, ast.Yield | ast.YieldFrom | ast.Return) and statement.value:
                    yield from _outermost(statement.value)


def _outermost(value: ast.expr) -> Iterator[str]:
    match value:
        case ast.JoinedStr():
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in value.values)
        case ast.Constant(value=str() as text):
            yield text
        case ast.BinOp():
            yield from _outermost(value.left)
        case ast.GeneratorExp() | ast.ListComp():
            yield from _outermost(value.elt)
        case ast.IfExp():
            yield from (*_outermost(value.body), *_outermost(value.orelse))


_MODULES = (problems, vrrp_troubles, stale_verdicts, watched_source)
_ALL = sorted(
    {
        each if each.startswith(("vrrp ", "virtual ", "discover ")) else f"{_BEFORE.get(module, '')}{each}"
        for module in _MODULES
        for each in _sentences(module)
    }
)


def test_the_sentences_are_found():
    """Those that a reader of the code sees, so that the test below does not pass for want of them."""
    assert len(_ALL) >= 17
    assert "pool x has no server up" in _ALL
    assert "virtual IP x is in fault: x" in _ALL
    assert "x is x" in _ALL
    assert "discover x: x" in _ALL


@pytest.mark.parametrize("problem", _ALL)
def test_every_problem_has_a_next_step(problem: str):
    """A new sentence in these modules needs one too."""
    assert next_step(problem, supervisorctl=_CONTROL)


def test_of_what_programs_collect():
    """Sentences that are made by a call and not yielded."""
    assert "discover: what was found is not in the pools" in inspect.getsource(discover)
    assert next_step("discover: what was found is not in the pools: x", supervisorctl=_CONTROL)
    assert next_step("property appliance.x: wrong", supervisorctl=_CONTROL)


@pytest.mark.parametrize(
    ("problem", "step"),
    [
        ("pool masters has no server up", "`appliance why masters`"),
        ("virtual IP api is in fault: eth0 is down", "`appliance why api`"),
        (
            "health is fatal: exit status 2",
            f"`{_CONTROL} restart health`",
        ),
        ("frontend kube-api is full: 1 of 1 connections", "`appliance sessions --frontend kube-api`"),
    ],
)
def test_names_are_filled_in(problem: str, step: str):
    """The command can be copied."""
    assert step in (next_step(problem, supervisorctl=_CONTROL) or "")


def test_what_is_not_known():
    """A newer program may say what we have never heard."""
    assert next_step("Unheard", supervisorctl=_CONTROL) is None
