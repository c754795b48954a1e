"""The queue of requests for a reload."""

from pathlib import Path

import gevent
import pytest
import structlog
from support.processes.greenlets import until

from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.files.kept_counts import KeptCounts
from appliance.net.reloading import reload_queue
from appliance.wire.lines.control import Answer, AnswerProblem

pytestmark = pytest.mark.sockets


class BrokenValidator:
    """A transaction whose validator cannot be imported, as on a disk that has gone bad."""

    watch = 0.0
    tried = 0
    accepted = None

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


def test_a_validator_that_cannot_be_loaded_hangs_no_reload(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """It is loaded between reloads; what goes wrong there must not end the greenlet that answers them."""
    monkeypatch.setattr(reload_queue, "_CONVERGE", 0.01)
    transaction = BrokenValidator()
    queue = reload_queue.ReloadQueue(
        transaction,  # type: ignore[arg-type]  # all it uses
        structlog.get_logger(),
        participation=Participant(),  # type: ignore[arg-type]  # all it uses
        counts=KeptCounts(tmp_path / "counts.json", names=reload_queue.RESULTS),
        after=list,
    )
    until(lambda: transaction.tried > 1)
    with gevent.Timeout(20):
        assert queue.ask("test").ok
        queue.close()
