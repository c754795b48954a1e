"""An acceptor hands connections on, pauses at limits and in need, and outlives a bug in what it calls."""

import errno
import os
import resource
import socket
from collections.abc import Callable, Iterator

import gevent
import pytest
from support.programs.trace import is_reset
from support.values.snapshots import frontend

from appliance.core.balancing.frontend_state import FrontendState
from appliance.model.end_reasons import EndReason
from appliance.net.data.accept import Acceptor
from appliance.net.data.traffic import Traffic

pytestmark = pytest.mark.programs


class Desk:
    """An acceptor on a listener of its own, with everything that it reports."""

    def __init__(self, *, limit: int = 0) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.faults: list[Exception] = []
        self.scarce: list[int] = []
        self.taken: list[int] = []
        self.traffic = Traffic(
            descriptors=1000, fault=self.faults.append, scarce=self.scarce.append, make_room=self.make_room
        )
        self.frontend = FrontendState(frontend("front", max_connections=limit), workers=1, index=0)
        self.bug: Exception | None = None
        descriptor = os.dup(self.listener.fileno())
        os.set_blocking(descriptor, False)  # the standard library's signature
        self.acceptor = Acceptor(self.traffic, self.frontend, descriptor, open_session=self.open)

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
        with gevent.Timeout(10):
            while not condition():
                self.traffic.tick()
                gevent.sleep(0.01)

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
def desk() -> Iterator[Desk]:
    """Give a desk without limit."""
    made = Desk()
    yield made
    made.close()


def test_connections_are_handed_on(desk: Desk):
    """Every connection is handed on and counted; nothing is accepted before the start or after the close."""
    clients = [desk.connect() for _ in range(20)]
    desk.until(lambda: True)
    assert not desk.taken
    desk.acceptor.start()
    desk.until(lambda: len(desk.taken) == 20)
    assert (desk.frontend.total, desk.frontend.current) == (20, 20)
    desk.acceptor.close()
    desk.acceptor.close()
    assert desk.acceptor.resume() is False
    assert len(clients) == 20


def test_limit_pauses():
    """At the limit the listener is left alone until there is room."""
    desk = Desk(limit=1)
    desk.acceptor.start()
    clients = [desk.connect(), desk.connect()]
    desk.until(lambda: desk.traffic.paused)
    assert len(desk.taken) == 1
    assert desk.acceptor.resume() is True
    desk.frontend.current -= 1
    desk.make_room()
    desk.until(lambda: len(desk.taken) == 2)
    assert len(clients) == 2
    desk.close()


def test_bug_costs_one_connection(desk: Desk):
    """A connection that a bug keeps from being taken is reset, closed and counted; the next one is taken."""
    desk.bug = RuntimeError("a bug")
    desk.acceptor.start()
    first = desk.connect()
    before = open_files()
    desk.until(lambda: desk.faults == [desk.bug])
    assert open_files() == before
    assert is_reset(first)
    assert (desk.frontend.total, desk.frontend.current, desk.frontend.failed) == (1, 0, 1)
    assert desk.traffic.reasons[EndReason.INTERNAL] == 1
    desk.bug = None
    second = desk.connect()
    desk.until(lambda: len(desk.taken) == 1)
    assert (desk.frontend.total, desk.frontend.current, desk.frontend.failed) == (2, 1, 1)
    second.close()


def test_need_of_descriptors_pauses_for_a_moment(desk: Desk):
    """Without descriptors the listener rests, and is tried again later."""
    client = desk.connect()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(map(int, open_files()))
    fillers = [os.dup(0) for _ in range(used)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (used, hard))
    try:
        desk.acceptor.start()
        desk.until(lambda: desk.scarce == [errno.EMFILE])
        assert desk.acceptor.resume() is True
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for filler in fillers:
            os.close(filler)
    assert desk.traffic.reasons[EndReason.NO_DESCRIPTORS] == 1
    desk.until(lambda: desk.acceptor.resume() is False)
    desk.until(lambda: len(desk.taken) == 1)
    client.close()


class Faulty:
    """Admission with a bug."""

    def admits(self, _: bytes) -> bool:
        """Fail."""
        raise ZeroDivisionError


def test_bug_in_the_admission_costs_one_connection(desk: Desk):
    """Where the lists of networks cannot be asked the client is reset and its descriptor closed."""
    desk.frontend.admission = Faulty()
    before = open_files()
    desk.acceptor.start()
    client = desk.connect()
    desk.until(lambda: desk.faults)
    assert is_reset(client)
    client.close()
    assert open_files() - before == set()
    assert (desk.frontend.total, desk.frontend.current, desk.frontend.failed) == (0, 0, 1)
