"""What a worker offers to the program `migrate`, in which order, and why sessions stay."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
import structlog
from support.processes.greenlets import until
from support.worker.lone_sessions import LoneSessions

from appliance.model.end_reasons import EndReason
from appliance.model.operator_events import OperatorEvent
from appliance.model.paths import Paths
from appliance.model.program_names import MIGRATE
from appliance.net.control.control_client import ask
from appliance.net.control.control_server import Call, ControlServer
from appliance.wire.lines import moving_sessions
from appliance.wire.lines.control import Answer, Question, bad, good
from appliance.wire.lines.moving_sessions import NO_ROOM, Offered
from appliance.wire.lines.worker_arguments import WorkerArguments
from appliance.worker.relay.session.session_phases import OPEN, QUEUED
from appliance.worker.session_batches import SessionBatches
from appliance.worker.session_ids import SessionIds
from appliance.worker.sessions_to_other_nodes import EmigratingSessions

pytestmark = pytest.mark.sockets

_ADDRESS = "127.0.0.1"


def _fail(where: str, error: Exception) -> None:
    raise AssertionError(where) from error


class _Migrate:
    """A program that notes what it is offered, and takes what it has no reason to refuse."""

    def __init__(self, path: Path) -> None:
        self.offered: list[str] = []
        self.refuses: Mapping[str, str] = {}
        self.lost = 0
        self.fails = ""
        self._server = ControlServer(
            path,
            {"offer": self._offer, "take": self._take, "count-lost": self._count_lost},
            on_error=_fail,
        )

    def _offer(self, call: Call) -> Answer:
        names = [each.id for each in moving_sessions.offer(call.question.values).sessions]
        self.offered += names
        reasons = tuple(self.refuses.get(each, "") for each in names)
        return good(**moving_sessions.values(Offered(refused=reasons)))

    def _take(self, call: Call) -> Answer:
        return bad(self.fails) if self.fails and call.question.values["places"] else good()

    def _count_lost(self, call: Call) -> Answer:
        self.lost += call.question.integer("sessions")
        return good()

    def close(self) -> None:
        """End it."""
        self._server.close()


class _Worker:
    """A worker's sessions, and how they emigrate."""

    def __init__(self, stack: ExitStack, directory: Path) -> None:
        self.sessions = LoneSessions(stack, each={"max_connections": 1})
        self.events: list[OperatorEvent] = []
        paths = Paths(runtime=directory, state=directory)
        self.migrate = _Migrate(paths.control(MIGRATE))
        arguments = WorkerArguments(
            program="proxy-api",
            group="api",
            generation=1,
            index=0,
            workers=1,
            snapshot=1,
            listeners=(),
            ready_fd=-1,
        )
        traffic = self.sessions.traffic
        self.ids = SessionIds(arguments)
        emigrating = EmigratingSessions(
            paths,
            arguments,
            traffic,
            self.ids,
            SessionBatches(traffic),
            publish=self.events.append,
            log=structlog.get_logger(),
        )
        self._control = directory / "worker"
        self._server = ControlServer(self._control, {"emigrate": emigrating.emigrate}, on_error=_fail)

    def open_and_queued(self, *, queued: int) -> list[str]:
        """Have one open session, and others that wait for its place; return their ids."""
        _, first = self.sessions.session()
        self.sessions.until(lambda: first.phase == OPEN)
        rest = [self.sessions.session()[1] for _ in range(queued)]
        assert [each.phase for each in rest] == [QUEUED] * queued
        return [self.ids.of(each.number) for each in (first, *rest)]

    def emigrate(self, **values: object) -> Answer:
        """Have all move, or a share, as `migrate` asks."""
        return ask(self._control, Question(command="emigrate", values={"address": _ADDRESS, **values}))

    def close(self) -> None:
        """End the sessions, and the servers."""
        self._server.close()
        self.migrate.close()
        self.sessions.traffic.end_all(EndReason.KILLED)
        self.sessions.traffic.close()
        assert self.sessions.faults == []


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[_Worker]:
    """Give a worker without sessions."""
    with ExitStack() as stack:
        made = _Worker(stack, tmp_path)
        yield made
        made.close()


def test_those_that_wait_for_a_place_follow_the_open_ones(worker: _Worker):
    """Their server is then as busy on the other node as here, and they get places in their order."""
    names = worker.open_and_queued(queued=2)
    assert worker.emigrate() == good(moved=3, stay={}, trouble="")
    assert worker.migrate.offered == names


def test_a_share_are_those_that_came_last(worker: _Worker):
    """Of these, too, the open ones come first."""
    names = worker.open_and_queued(queued=3)
    assert worker.emigrate(share=0.5) == good(moved=2, stay={}, trouble="")
    assert worker.migrate.offered == names[2:]
    assert worker.emigrate(share=1.0) == good(moved=2, stay={}, trouble="")
    assert worker.migrate.offered == [*names[2:], *names[:2]]


def test_a_node_without_room_is_named(worker: _Worker):
    """It is no matter of the session's bytes."""
    names = worker.open_and_queued(queued=1)
    worker.migrate.refuses = {names[0]: NO_ROOM, names[1]: "no pool"}
    stay = {"the other node has no descriptors left": 1, "no pool": 1}
    assert worker.emigrate() == good(moved=0, stay=stay, trouble="")


def test_what_was_not_offered_is_named(worker: _Worker):
    """The trouble says why."""
    worker.open_and_queued(queued=1)
    worker.migrate.close()
    answer = worker.emigrate()
    assert answer.values["stay"] == {"it could not be offered": 2}
    assert answer.values["trouble"]


def test_what_migrate_loses_is_counted_by_its_next_run(worker: _Worker):
    """The event comes at once."""
    worker.open_and_queued(queued=1)
    worker.migrate.fails = "it fails"
    worker.emigrate()
    assert [(each.subject, each.detail) for each in worker.events] == [(_ADDRESS, "2: it fails")]
    until(lambda: worker.migrate.lost == 2, what="they are counted")
