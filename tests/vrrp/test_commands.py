"""What is asked of `vrrp` while it opens, fails and stops, with a program that the test plays."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.values import snapshots

from appliance.model.paths import Paths
from appliance.model.snapshot import snapshot as model
from appliance.net.control.deferred_answer import DeferredAnswer
from appliance.net.loop.loop import Loop
from appliance.vrrp.commands import VrrpCommands
from appliance.vrrp.groups.opening import OpeningOutcome
from appliance.wire.lines.control import Answer, Question, good

pytestmark = pytest.mark.sockets


class Program:
    """Takes snapshots, and makes them real when it is told that all is open."""

    def __init__(self) -> None:
        self.snapshot: model.Snapshot | None = None
        self.stopping = False
        self.broken = False
        self.applied: list[tuple[model.Snapshot, Callable[[OpeningOutcome], None]]] = []

    def apply(self, snapshot: model.Snapshot, _: float, *, then: Callable[[OpeningOutcome], None]) -> None:
        """Begin."""
        if self.broken:
            raise ZeroDivisionError
        self.applied.append((snapshot, then))

    def end(self, outcome: OpeningOutcome = OpeningOutcome.DONE) -> None:
        """Let what has begun first come to its end."""
        snapshot, then = self.applied.pop(0)
        if outcome is OpeningOutcome.DONE:
            self.snapshot = snapshot
        then(outcome)


class Console:
    """The commands of a program."""

    def __init__(self, root: Path, loop: Loop) -> None:
        self.paths = Paths(config=root / "appliance.yaml", runtime=root, state=root)
        self.paths.snapshot(0).parent.mkdir()
        self.program = Program()
        self._handlers = VrrpCommands(self.paths, self.program, loop).handlers
        for number in (1, 2):
            made = snapshots.snapshot(number=number, groups=(), pools=())
            self.paths.snapshot(number).write_bytes(model.encode(made))

    def ask(self, command: str, **values: object) -> list[Answer]:
        """Ask, and return the list that has the answer once there is one."""
        answers: list[Answer] = []
        answer = self._handlers[command](Question(command=command, values=values))
        if isinstance(answer, DeferredAnswer):
            answer.deliver(answers.append)
        else:
            answers.append(answer)
        return answers


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    """Return the commands of a program without a snapshot."""
    loop = Loop()
    yield Console(tmp_path, loop)
    loop.close()


def test_a_commit_is_answered_when_all_is_open(console: Console) -> None:
    """Whoever asks for the same one meanwhile gets the same answer then, and afterwards at once."""
    askers = [console.ask("commit", snapshot=1) for _ in range(2)]
    assert askers == [[], []]
    assert len(console.program.applied) == 1
    console.program.end()
    assert askers == [[good(snapshot=1)]] * 2
    assert console.ask("commit", snapshot=1) == [good(snapshot=1)]


def test_a_commit_that_failed_is_tried_again(console: Console) -> None:
    """What an error broke off is not told as done when it is asked for again."""
    console.program.broken = True
    with pytest.raises(ZeroDivisionError):
        console.ask("commit", snapshot=1)
    console.program.broken = False
    again = console.ask("commit", snapshot=1)
    assert again == []
    console.program.end()
    assert again == [good(snapshot=1)]


def test_the_next_commit_does_not_wait_for_the_last_one(console: Console) -> None:
    """Another snapshot is begun at once; each asker hears of his own."""
    first, second = console.ask("commit", snapshot=1), console.ask("commit", snapshot=2)
    console.program.end()
    assert (first, second) == ([good(snapshot=1)], [])
    assert console.ask("commit", snapshot=2) == []
    console.program.end()
    assert second == [good(snapshot=2)]


def test_a_stop_is_no_success(console: Console) -> None:
    """A commit whose virtual IPs were not all opened before the stop is answered with that."""
    (answers) = console.ask("commit", snapshot=1)
    console.program.end(OpeningOutcome.GIVEN_UP)
    assert "vrrp is stopping" in str(answers[0].errors)


@pytest.mark.parametrize(
    ("command", "values"),
    [
        ("prepare", {"snapshot": 1}),
        ("commit", {"snapshot": 1}),
        ("move", {"name": "api"}),
        ("reclaim", {"name": "api"}),
        ("informed", {"name": "api"}),
    ],
)
def test_nothing_is_begun_while_it_stops(console: Console, command: str, values: dict[str, object]) -> None:
    """What would have it take part again is refused in words."""
    console.program.stopping = True
    (answer,) = console.ask(command, **values)
    assert "vrrp is stopping" in str(answer.errors)
    assert console.program.applied == []
