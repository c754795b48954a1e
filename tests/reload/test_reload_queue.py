"""The queue of requests for a reload."""

from pathlib import Path

import gevent
import pytest
import structlog
from support.processes.greenlets import until

from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.files.kept_counts import KeptCounts
from appliance.reload import reload_queue
from appliance.wire.lines.control import Answer, AnswerProblem

pytestmark = pytest.mark.sockets


class BrokenValidator:
    """A transaction whose validator cannot be imported, as on a disk that has gone bad."""

    watch = 0.0
    tried = 0
    accepted = None
    again_in = None

    def is_to_be_tried_again(self) -> bool:
        """Have nothing to try."""
        return False

    def follow_found(self) -> Answer:
        """Answer."""
        return Answer(ok=True)

    try_again = follow_found

    def converge(self, *, everybody: bool) -> None:
        """Have nothing to do."""

    def load_validator(self) -> None:
        """Fail as an import does."""
        self.tried += 1
        raise ImportError("it is gone")

    def reload(self, content: bytes | None = None, *, forced: bool = False) -> Answer:
        """Answer."""
        assert content is None
        assert not forced
        return Answer(ok=True)


class Participant:
    """Takes part, always."""

    def converge(self, accepted: Snapshot) -> None:
        """Have nothing to do."""

    def resume(self) -> list[AnswerProblem]:
        """Have nothing to end."""
        return []


def _queue(transaction: BrokenValidator, directory: Path) -> reload_queue.ReloadQueue:
    return reload_queue.ReloadQueue(
        transaction,  # type: ignore[arg-type]  # all it uses
        structlog.get_logger(),
        participation=Participant(),  # type: ignore[arg-type]  # all it uses
        counts=KeptCounts(directory / "counts.json", names=reload_queue.RESULTS),
        after=list,
    )


def test_a_validator_that_cannot_be_loaded_hangs_no_reload(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """It is loaded between reloads; what goes wrong there must not end the greenlet that answers them."""
    monkeypatch.setattr(reload_queue, "_CONVERGE", 0.01)
    transaction = BrokenValidator()
    queue = _queue(transaction, tmp_path)
    until(lambda: transaction.tried > 1)
    with gevent.Timeout(20):
        assert queue.ask("test").ok
        queue.close()


class Counted(BrokenValidator):
    """A transaction that counts how often programs are brought to the accepted snapshot."""

    converged = 0

    def converge(self, *, everybody: bool) -> None:
        """Count it."""
        self.converged += 0 if everybody else 1

    def load_validator(self) -> None:
        """Load it."""


def test_requests_without_a_pause_hinder_nothing_that_is_due(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """A program that missed a commit gets it, whoever reloads how often."""
    monkeypatch.setattr(reload_queue, "_CONVERGE", 0.02)
    monkeypatch.setattr(reload_queue, "_OVERDUE", 0.05)
    transaction = Counted()
    queue = _queue(transaction, tmp_path)
    with gevent.Timeout(20):
        until(lambda: queue.ask("test").ok and transaction.converged > 3)
        queue.close()


class RefusedInPassing(BrokenValidator):
    """A transaction that refuses the first reload, and does it when it is tried again."""

    retried = 0

    def load_validator(self) -> None:
        """Load it."""

    def reload(self, content: bytes | None = None, *, forced: bool = False) -> Answer:
        """Refuse it for now."""
        assert (content, forced) == (None, False)
        return Answer(ok=False, errors=(AnswerProblem(message="health is gone"),), values={"again_in": 0.1})

    def is_to_be_tried_again(self) -> bool:
        """Say yes, once."""
        return not self.retried

    def try_again(self) -> Answer:
        """Do it."""
        self.retried += 1
        return Answer(ok=True, values={"changed": ["pools.a"]})


def test_what_was_refused_in_passing_is_tried_again(tmp_path: Path):
    """Nobody has to ask twice: a second later it is done, and nothing is refused any more."""
    transaction = RefusedInPassing()
    queue = _queue(transaction, tmp_path)
    with gevent.Timeout(20):
        assert queue.ask("test").values == {"again_in": 0.1}
        assert queue.refused
        until(lambda: transaction.retried == 1)
        until(lambda: not queue.refused)
        assert queue.counts == {"done": 1, "unchanged": 0, "refused": 1, "refused-again": 0}
        queue.close()
