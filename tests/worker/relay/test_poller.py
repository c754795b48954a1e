"""The poller tells each change once, to the side that it is about."""

import os
import socket
from collections.abc import Iterator
from contextlib import closing
from errno import ENOENT
from time import monotonic

import gevent
import gevent.socket
import pytest
from support.processes.greenlets import until

from appliance.worker.relay.poll_events import ALL, FIN, INCOMING, READABLE, WRITABLE
from appliance.worker.relay.poller import Pollable, Poller

pytestmark = pytest.mark.sockets


class Seen(Pollable):
    """Notes the events that it is told of."""

    def __init__(self) -> None:
        self.events: list[int] = []
        self.gone_on = 0

    def on_events(self, events: int) -> None:
        """Note them."""
        self.events.append(events)

    def go_on(self) -> None:
        """Note it."""
        self.gone_on += 1


class Closing(Seen):
    """Closes another socket when it is told of something, and registers a new one with its number."""

    def __init__(self, poller: Poller) -> None:
        super().__init__()
        self.poller = poller
        self.victim: socket.socket | None = None
        self.successor = Seen()
        self.opened: list[socket.socket] = []

    def on_events(self, events: int) -> None:
        """Close the victim with the first event."""
        super().on_events(events)
        if self.victim is None:
            return
        fd = self.victim.fileno()
        self.poller.forget(fd)
        self.victim.close()
        self.victim = None
        first, second = socket.socketpair()
        self.opened = [first, second]
        assert fd in (first.fileno(), second.fileno())  # the kernel gives the lowest number that is free
        self.poller.register(fd, self.successor)


@pytest.fixture
def poller() -> Iterator[Poller]:
    """Give a poller."""
    made = Poller()
    yield made
    made.close()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Give two sockets that are connected, and do not wait."""
    one, two = socket.socketpair()
    one.setblocking(False)  # noqa: FBT003  # the standard library's signature
    with closing(one), closing(two):
        yield one, two


def settle() -> None:
    """Let the loop turn a few times."""
    for _ in range(5):
        gevent.sleep(0)


def test_each_change_is_told_once(poller: Poller, pair: tuple[socket.socket, socket.socket]):
    """First the state that there is, then each change of it, whether or not anybody reads."""
    one, two = pair
    side = Seen()
    poller.register(one.fileno(), side)
    until(lambda: side.events)
    settle()
    assert side.events == [WRITABLE]
    two.sendall(b"x")
    until(lambda: len(side.events) == 2)
    settle()
    assert side.events[1:] == [WRITABLE | READABLE]
    two.shutdown(socket.SHUT_WR)
    until(lambda: len(side.events) == 3)
    assert side.events[2] & FIN


def test_what_is_asked_for_changes(poller: Poller, pair: tuple[socket.socket, socket.socket]):
    """Room is told only once it is asked for, and at once where there is some already."""
    one, _ = pair
    side = Seen()
    poller.register(one.fileno(), side, INCOMING)
    settle()
    assert side.events == []
    poller.change(one.fileno(), ALL)
    until(lambda: side.events)
    assert side.events == [WRITABLE]
    poller.unregister(one.fileno())
    with pytest.raises(OSError, match=rf"Errno {ENOENT}"):
        poller.change(one.fileno(), ALL)


def test_who_is_forgotten_is_told_nothing(poller: Poller, pair: tuple[socket.socket, socket.socket]):
    """An event of a descriptor that is about to be closed reaches nobody."""
    one, two = pair
    side = Seen()
    poller.register(one.fileno(), side)
    poller.forget(one.fileno())
    two.sendall(b"x")
    settle()
    assert side.events == []


def test_event_of_a_closed_descriptor_does_not_reach_its_successor(poller: Poller):
    """Two sockets are ready in one turn; the first one told closes the other, whose number comes back."""
    first, peer_of_first = socket.socketpair()
    second, peer_of_second = socket.socketpair()
    killers = []
    for own, other in ((first, second), (second, first)):
        killer = Closing(poller)
        killer.victim = other
        killers.append((own, killer))
    for own, killer in killers:
        poller.register(own.fileno(), killer)
    until(lambda: any(each.events for _, each in killers))
    # Whoever came first has closed the other one. Its successor's first event is its own: writable, and
    # nothing of what the peers have sent.
    [told] = [each for _, each in killers if each.events]
    until(lambda: told.successor.events)
    settle()
    assert told.successor.events == [WRITABLE]
    for each in (first, second, peer_of_first, peer_of_second, *told.opened):
        each.close()


def test_who_goes_on_later_lets_others_come_first(poller: Poller, pair: tuple[socket.socket, socket.socket]):
    """What is asked for in one turn is done once, in the next one."""
    one, _ = pair
    side = Seen()
    poller.register(one.fileno(), side)
    poller.later(side)
    poller.later(side)
    assert side.gone_on == 0
    until(lambda: side.gone_on == 2)
    settle()
    assert side.gone_on == 2


def test_callback_comes_soon(poller: Poller):
    """It is called once, and not from within the call that asks for it."""
    called: list[None] = []
    poller.soon(lambda: called.append(None))
    assert called == []
    until(lambda: called)
    settle()
    assert called == [None]


@pytest.fixture
def leading(poller: Poller) -> Poller:
    """Give a poller that is the outermost loop of this process."""
    poller.lead()
    return poller


def far() -> float:
    """Return a moment that no test waits for."""
    return monotonic() + 30.0


def test_leading_it_tells_of_events_and_ends_in_time(
    leading: Poller, pair: tuple[socket.socket, socket.socket]
):
    """Sides are told while it waits, and the wait ends at its moment, also where that has passed."""
    one, two = pair
    side = Seen()
    leading.register(one.fileno(), side)
    assert not leading.wait(monotonic() - 1.0)
    assert side.events == [WRITABLE]
    two.sendall(b"x")
    leading.wait(monotonic() + 0.01)
    assert side.events[1:] == [WRITABLE | READABLE]
    leading.unregister(one.fileno())
    two.sendall(b"x")
    leading.wait(monotonic() + 0.01)
    assert len(side.events) == 2


def test_leading_it_does_what_was_put_off(leading: Poller):
    """Neither waits for an event."""
    side = Seen()
    called: list[None] = []
    leading.later(side)
    leading.soon(lambda: called.append(None))
    leading.wait(monotonic())
    assert (side.gone_on, called) == (1, [None])


def test_leading_it_hears_of_what_gevent_has_to_do(
    leading: Poller, pair: tuple[socket.socket, socket.socket]
):
    """A greenlet waits for bytes: when they come the wait ends, long before its moment."""
    one, two = pair
    reader = gevent.spawn(gevent.socket.wait_read, one.fileno())
    gevent.idle()
    two.sendall(b"x")
    while not reader.ready():
        assert leading.wait(far())
        gevent.idle()
    assert reader.successful()


def test_leading_it_hears_of_what_gevent_has_to_do_anew(
    leading: Poller, pair: tuple[socket.socket, socket.socket]
):
    """A greenlet that reads and waits again is heard each time: its watcher is registered before a wait."""
    one, two = pair
    read = []

    def follow() -> None:
        for _ in range(20):
            gevent.socket.wait_read(one.fileno())
            read.append(one.recv(10))

    following = gevent.spawn(follow)
    gevent.idle()
    for number in range(20):
        two.sendall(b"x")
        leading.wait(far())
        gevent.idle()
        assert len(read) == number + 1
    following.join()


def test_many_descriptors(poller: Poller):
    """More than one batch of events, and descriptors of any number."""
    pairs = [socket.socketpair() for _ in range(400)]
    sides = [Seen() for _ in pairs]
    high = os.dup2(pairs[0][0].fileno(), 3000)
    highest = Seen()
    poller.register(high, highest)
    for (one, _), side in zip(pairs, sides, strict=True):
        poller.register(one.fileno(), side)
    until(lambda: highest.events and all(each.events for each in sides))
    os.close(high)
    for each in pairs:
        each[0].close()
        each[1].close()
