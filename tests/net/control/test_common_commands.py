"""`prepare`, `commit` and `abort` of a program, each of which may come again."""

from pathlib import Path

import pytest
from support.values.snapshots import snapshot

from appliance.model.paths import Paths
from appliance.model.snapshot import snapshot as model
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.control.common_commands import ReloadCommands, StatusHead
from appliance.net.control.control_server import Call, Caller
from appliance.wire.lines.control import Answer, AnswerProblem, Question

pytestmark = pytest.mark.sockets


class Program:
    """One that refuses the snapshots in `refused`, and notes what it applies."""

    def __init__(self, place: Path) -> None:
        self.applied: list[Snapshot] = []
        self.refused: tuple[int, ...] = ()
        paths = Paths(runtime=place, state=place)
        paths.snapshot(1).parent.mkdir()
        for number in (1, 2):
            paths.snapshot(number).write_bytes(model.encode(snapshot(number=number)))
        self.commands = ReloadCommands(
            "any",
            paths,
            applied=lambda: self.applied[-1] if self.applied else None,
            apply=self.applied.append,
            objections=self._objections,
        )

    @property
    def head(self) -> StatusHead:
        """What `status` begins with."""
        return self.commands.head()

    def _objections(self, proposed: Snapshot) -> tuple[AnswerProblem, ...]:
        return (AnswerProblem(message="no room"),) if proposed.number in self.refused else ()

    def does(self, command: str, number: int) -> Answer:
        """Return the answer to a command."""
        question = Question(command=command, values={"snapshot": number})
        answer = self.commands.handlers()[command](Call(question=question, descriptors=[], caller=Caller()))
        assert isinstance(answer, Answer)
        return answer


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Return a program that has applied nothing yet."""
    return Program(tmp_path)


def test_what_is_prepared_is_applied_once(program: Program):
    """A commit that comes again, because its answer was lost, changes nothing."""
    assert program.head["snapshot"] == 0
    assert program.does("prepare", 1).values["changed"] is True
    assert (program.head["pending"], program.applied) == (1, [])
    assert program.does("commit", 1).ok
    assert program.does("commit", 1).ok
    assert [each.number for each in program.applied] == [1]
    assert (program.head["snapshot"], program.head["pending"]) == (1, None)


def test_a_process_that_has_prepared_nothing_commits(program: Program):
    """It was started after the `prepare`."""
    assert program.does("commit", 2).ok
    assert program.head["snapshot"] == 2


def test_what_is_refused_is_not_prepared(program: Program):
    """The reason is told, and nothing waits for a commit."""
    program.refused = (1,)
    answer = program.does("prepare", 1)
    assert not answer.ok
    assert [each.message for each in answer.errors] == ["no room"]
    assert program.head["pending"] is None


def test_an_abort_forgets_only_its_own(program: Program):
    """One of an earlier transaction comes late."""
    program.does("prepare", 2)
    assert program.does("abort", 1).ok
    assert program.head["pending"] == 2
    assert program.does("abort", 2).ok
    assert program.head["pending"] is None
    assert program.applied == []
