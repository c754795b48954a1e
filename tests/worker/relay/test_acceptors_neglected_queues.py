"""What waits in another worker's queue is taken when it has waited from one look to the next."""

import os
import socket
from collections.abc import Iterator

import pytest
from support.values.snapshots import frontend

from appliance.core.balancing.frontend_state import FrontendState
from appliance.model.accept_claims import AcceptClaim
from appliance.worker.relay.acceptor import Acceptor
from appliance.worker.relay.acceptors import NeglectedQueues
from appliance.worker.relay.all_sessions import Traffic

pytestmark = pytest.mark.sockets


class Helper:
    """A worker that looks after the queue of another one."""

    def __init__(self, *, limit: int = 0) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.listener.setblocking(False)  # noqa: FBT003  # its only parameter
        self.faults: list[Exception] = []
        self.taken: list[int] = []
        self.frontend = FrontendState(frontend("front", max_connections=limit), workers=1, index=0)
        traffic = Traffic(descriptors=1000, fault=self.faults.append, accept_failed=lambda _: None)
        self.acceptor = Acceptor(
            traffic,
            self.frontend,
            os.dup(self.listener.fileno()),
            open_session=self.open,
            claim=AcceptClaim.SPARE,
        )
        self.queues = NeglectedQueues()
        self.queues.add(self.acceptor)
        self.clients: list[socket.socket] = []
        self.bug: Exception | None = None

    def open(self, _: FrontendState, fd: int, __: bytes) -> None:
        """Take a connection."""
        if self.bug is not None:
            raise self.bug
        self.taken.append(fd)

    def connect(self, number: int = 1) -> None:
        """Let clients come."""
        for _ in range(number):
            self.clients.append(socket.create_connection(self.listener.getsockname(), timeout=10))

    def close(self) -> None:
        """Close everything."""
        self.queues.remove(self.acceptor)
        self.acceptor.close()
        self.listener.close()
        for client in self.clients:
            client.close()
        for fd in self.taken:
            os.close(fd)


@pytest.fixture
def helper() -> Iterator[Helper]:
    """Return a helper without limit."""
    helper = Helper()
    yield helper
    helper.close()
    assert helper.faults == []


def test_what_has_just_come_is_left_to_its_worker(helper: Helper) -> None:
    """The first look only sees that somebody waits; whoever is gone by the second one is not asked for."""
    helper.connect()
    helper.queues.look()
    assert helper.taken == []
    helper.listener.accept()[0].close()
    helper.queues.look()
    helper.connect()
    helper.queues.look()
    assert helper.taken == []


def test_what_waits_is_taken(helper: Helper) -> None:
    """From the second look on, more and more at a time, until nobody waits."""
    helper.connect(50)
    taken = []
    for _ in range(8):
        helper.queues.look()
        taken.append(len(helper.taken))
    assert taken == [0, 1, 3, 7, 15, 31, 47, 50]
    assert (helper.frontend.total, helper.frontend.current) == (50, 50)


def test_a_limit_holds() -> None:
    """A worker that is full itself leaves the rest where it is."""
    helper = Helper(limit=3)
    helper.connect(5)
    for _ in range(4):
        helper.queues.look()
    assert len(helper.taken) == 3
    helper.frontend.current -= 1
    helper.queues.look()
    assert len(helper.taken) == 4
    helper.close()


def test_a_bug_costs_one_connection() -> None:
    """It is told, and the worker goes on."""
    helper = Helper()
    helper.bug = RuntimeError("a bug")
    helper.connect()
    for _ in range(2):
        helper.queues.look()
    assert helper.faults == [helper.bug]
    assert (helper.frontend.failed, helper.frontend.current) == (1, 0)
    helper.close()


def test_a_queue_that_was_closed(helper: Helper) -> None:
    """It is looked at no more, and twice is as good as once."""
    helper.connect()
    helper.queues.look()
    helper.queues.remove(helper.acceptor)
    helper.queues.remove(helper.acceptor)
    helper.queues.look()
    assert helper.taken == []
