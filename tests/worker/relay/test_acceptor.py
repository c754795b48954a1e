"""An acceptor hands connections on, pauses at limits and in need, and outlives a bug in what it calls."""

import errno
import os
import resource
import socket
from collections.abc import Callable, Iterator

import pytest
from support.processes.greenlets import until
from support.values.snapshots import frontend
from support.worker.trace import is_reset

from appliance.core.balancing.frontend_state import FrontendState
from appliance.model.accept_claims import AcceptClaim
from appliance.model.end_reasons import EndReason
from appliance.worker.relay.acceptor import Acceptor
from appliance.worker.relay.all_sessions import Traffic

pytestmark = pytest.mark.sockets


class Setup:
    """An acceptor on a listener of its own, with everything that it reports."""

    def __init__(
        self,
        *,
        limit: int = 0,
        claim: AcceptClaim = AcceptClaim.SOLE,
        listener: socket.socket | None = None,
    ) -> None:
        self.listener = listener or socket.create_server(("127.0.0.1", 0))
        self.faults: list[Exception] = []
        self.accept_failed: list[int] = []
        self.taken: list[int] = []
        self.traffic = Traffic(
            descriptors=1000,
            fault=self.faults.append,
            accept_failed=self.accept_failed.append,
            make_room=self.make_room,
        )
        self.frontend = FrontendState(frontend("front", max_connections=limit), workers=1, index=0)
        self.bug: Exception | None = None
        descriptor = os.dup(self.listener.fileno())
        os.set_blocking(descriptor, False)  # the standard library's signature
        self.acceptor = Acceptor(self.traffic, self.frontend, descriptor, open_session=self.open, claim=claim)

    def make_room(self) -> None:
        """Do what a worker does when a session ends."""
        self.traffic.paused = self.acceptor.resume()

    def open(self, _: FrontendState, fd: int, __: bytes) -> None:
        """Take a connection."""
        if self.bug is not None:
            raise self.bug
        self.taken.append(fd)

    def connect(self) -> socket.socket:
        """Return a client."""
        return socket.create_connection(self.listener.getsockname(), timeout=10)

    def until(self, condition: Callable[[], object]) -> None:
        """Run the loop until the condition holds."""

        def ticked() -> object:
            self.traffic.tick()
            return condition()

        until(ticked)

    def close(self) -> None:
        """Close everything."""
        self.acceptor.close()
        self.listener.close()
        for fd in self.taken:
            os.close(fd)


def open_files() -> set[str]:
    """Return the open descriptors of this process."""
    return set(os.listdir("/proc/self/fd"))  # noqa: PTH208  # a directory of the kernel


@pytest.fixture
def setup() -> Iterator[Setup]:
    """Give a setup without limit."""
    made = Setup()
    yield made
    made.close()


def test_connections_are_handed_on(setup: Setup):
    """Every connection is handed on and counted; nothing is accepted before the start or after the close."""
    clients = [setup.connect() for _ in range(20)]
    setup.until(lambda: True)
    assert not setup.taken
    setup.acceptor.start()
    setup.until(lambda: len(setup.taken) == 20)
    assert (setup.frontend.total, setup.frontend.current) == (20, 20)
    setup.acceptor.close()
    setup.acceptor.close()
    assert setup.acceptor.resume() is False
    assert len(clients) == 20


@pytest.mark.parametrize("claim", [AcceptClaim.SOLE, AcceptClaim.FIRST, AcceptClaim.EQUAL])
def test_a_worker_takes_all_that_waits(claim: AcceptClaim):
    """Whatever its claim, it is told of all connections, also where it goes to the end of the line."""
    setup = Setup(claim=claim)
    setup.acceptor.start()
    clients = [setup.connect() for _ in range(50)]
    setup.until(lambda: len(setup.taken) == 50)
    assert setup.frontend.total == len(clients)
    setup.close()


def test_limit_pauses():
    """At the limit the listener is left alone until there is room."""
    setup = Setup(limit=1)
    setup.acceptor.start()
    clients = [setup.connect(), setup.connect()]
    setup.until(lambda: setup.traffic.paused)
    assert len(setup.taken) == 1
    assert setup.acceptor.resume() is True
    setup.frontend.current -= 1
    setup.make_room()
    setup.until(lambda: len(setup.taken) == 2)
    assert len(clients) == 2
    setup.close()


def test_bug_costs_one_connection(setup: Setup):
    """A connection that a bug keeps from being taken is reset, closed and counted; the next one is taken."""
    setup.bug = RuntimeError("a bug")
    setup.acceptor.start()
    first = setup.connect()
    before = open_files()
    setup.until(lambda: setup.faults == [setup.bug])
    assert open_files() == before
    assert is_reset(first)
    assert (setup.frontend.total, setup.frontend.current, setup.frontend.failed) == (1, 0, 1)
    assert setup.traffic.reasons[EndReason.INTERNAL] == 1
    setup.bug = None
    second = setup.connect()
    setup.until(lambda: len(setup.taken) == 1)
    assert (setup.frontend.total, setup.frontend.current, setup.frontend.failed) == (2, 1, 1)
    second.close()


def test_need_of_descriptors_pauses_for_a_moment(setup: Setup):
    """Without descriptors the listener rests, and is tried again later."""
    client = setup.connect()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(map(int, open_files()))
    fillers = [os.dup(0) for _ in range(used)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (used, hard))
    try:
        setup.acceptor.start()
        setup.until(lambda: setup.accept_failed == [errno.EMFILE])
        setup.traffic.now = setup.acceptor.resume_at - 0.01  # however long the machine took to get here
        assert setup.acceptor.resume() is True
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for filler in fillers:
            os.close(filler)
    assert setup.traffic.reasons[EndReason.NO_DESCRIPTORS] == 1
    setup.until(lambda: setup.acceptor.resume() is False)
    setup.until(lambda: len(setup.taken) == 1)
    client.close()


class Faulty:
    """Access lists with a bug."""

    def admits(self, _: bytes) -> bool:
        """Fail."""
        raise ZeroDivisionError


def test_bug_in_the_access_lists_costs_one_connection(setup: Setup):
    """Where the lists of networks cannot be asked the client is reset and its descriptor closed."""
    setup.frontend.access_lists = Faulty()
    before = open_files()
    setup.acceptor.start()
    client = setup.connect()
    setup.until(lambda: setup.faults)
    assert is_reset(client)
    client.close()
    assert open_files() - before == set()
    assert (setup.frontend.total, setup.frontend.current, setup.frontend.failed) == (0, 0, 1)
