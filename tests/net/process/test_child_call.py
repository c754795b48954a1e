"""Calls in a child process."""

import os

import pytest

from appliance.net.process.child_call import ChildCall
from appliance.reload.boot import BootError, TakenError
from appliance.wire.lines.control import AnswerProblem

pytestmark = pytest.mark.programs


def test_its_work_is_done_by_another_process():
    """The result comes back, and nothing else: what the call changes is changed in the child."""
    changed: list[int] = []

    def call() -> tuple[int, bytes]:
        changed.append(1)
        return os.getpid(), b"x" * 1_000_000

    pid, text = ChildCall(call).result()
    assert (pid != os.getpid(), len(text), changed) == (True, 1_000_000, [])
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, 0)


def test_what_it_is_expected_to_raise_is_raised_here():
    """A refusal of a start keeps its kind, its problems with their places, and the next step."""
    problem = AnswerProblem(message="no", path="api", line=3, column=1)

    def call() -> None:
        raise TakenError(problem, problem, step="mend it")

    with pytest.raises(TakenError) as caught:
        ChildCall(call, expected=BootError).result()
    assert (caught.value.problems, caught.value.step) == ((problem, problem), "mend it")


def test_a_bug_is_told_by_the_child(capfd: pytest.CaptureFixture[str]):
    """Its traceback is on standard error, and there is no result."""

    def call() -> None:
        raise RuntimeError("a bug")

    begun = ChildCall(call)
    with pytest.raises(ChildProcessError):
        begun.result()
    assert "RuntimeError: a bug" in capfd.readouterr().err
