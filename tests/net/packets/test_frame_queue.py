"""Frames that wait for a full queue: all of them go, in order, or are given up in time."""

import errno
import socket
from collections.abc import Iterator

import pytest

from appliance.net.packets.frame_queue import MOST, PATIENCE, FrameQueue

pytestmark = pytest.mark.sockets

FRAMES = [number.to_bytes(2, "big") for number in range(1000)]


class Wire:
    """A socket whose buffer the other end empties, or an interface that is gone."""

    def __init__(self) -> None:
        self.ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.ours.settimeout(0)
        self.theirs.settimeout(0)
        self.gone = False

    def send(self, frame: bytes) -> None:
        """Send one frame; EAGAIN when the buffer is full."""
        if self.gone:
            raise OSError(errno.ENETDOWN, "gone")
        self.ours.send(frame)

    def arrived(self) -> list[bytes]:
        """Return what has arrived, and make room."""
        frames = []
        while True:
            try:
                frames.append(self.theirs.recv(16))
            except BlockingIOError:
                return frames


@pytest.fixture
def wire() -> Iterator[Wire]:
    """Return a wire."""
    made = Wire()
    yield made
    made.ours.close()
    made.theirs.close()


def test_what_does_not_fit_goes_later(wire: Wire):
    """All frames arrive in order, some at once and the rest as there is room."""
    queue = FrameQueue(wire)
    sent = queue.put(FRAMES, 100.0)
    assert 0 < sent < len(FRAMES)
    arrived = []
    while queue.deadline is not None:
        assert 100.0 < queue.deadline < 100.5
        arrived += wire.arrived()
        sent += queue.tick(100.01)
    assert [*arrived, *wire.arrived()] == FRAMES
    assert sent == len(FRAMES)


def test_what_fits_leaves_nothing_to_do(wire: Wire):
    """With room for all there is no deadline, and a tick is harmless."""
    queue = FrameQueue(wire)
    assert queue.put(FRAMES[:3], 100.0) == 3
    assert queue.deadline is None
    assert queue.tick(101.0) == 0


def test_a_later_announcement_goes_after_an_earlier_one(wire: Wire):
    """What is put while others wait is sent after them."""
    queue, arrived = FrameQueue(wire), []
    queue.put(FRAMES, 100.0)
    assert queue.put([b"new"], 100.0) == 0
    while queue.deadline is not None:
        arrived += wire.arrived()
        queue.tick(100.1)
    assert [*arrived, *wire.arrived()] == [*FRAMES, b"new"]


def test_what_is_not_true_any_more_is_not_sent(wire: Wire):
    """Cleared, it sends nothing of what waited."""
    queue = FrameQueue(wire)
    queue.put(FRAMES, 100.0)
    queue.clear()
    wire.arrived()
    assert (queue.deadline, queue.tick(100.1), wire.arrived()) == (None, 0, [])


def test_it_is_given_up_in_time(wire: Wire):
    """What has not gone within patience is an error, and nothing waits after it."""
    queue = FrameQueue(wire)
    queue.put(FRAMES, 100.0)
    with pytest.raises(BlockingIOError):
        queue.tick(100.0 + PATIENCE)
    assert queue.deadline is None


def test_what_comes_later_does_not_keep_up_what_waits(wire: Wire):
    """Each frame has its own time: new ones do not put off the end of the first."""
    queue = FrameQueue(wire)
    sent = queue.put(FRAMES, 100.0)
    queue.put([b"new"], 100.0 + PATIENCE / 2)
    with pytest.raises(BlockingIOError):
        queue.tick(100.0 + PATIENCE)
    assert queue.deadline is not None
    assert wire.arrived() == FRAMES[:sent]
    queue.tick(queue.deadline)
    assert (wire.arrived(), queue.deadline) == ([b"new"], None)


def test_another_error_is_one_at_once(wire: Wire):
    """An interface that is gone takes nothing later either."""
    queue = FrameQueue(wire)
    wire.gone = True
    with pytest.raises(OSError, match="gone"):
        queue.put(FRAMES, 100.0)
    assert queue.deadline is None


def test_what_waits_is_bounded(wire: Wire):
    """A flood is cut."""
    queue, sent = FrameQueue(wire), 0
    sent += queue.put(FRAMES * 10, 100.0)
    while queue.deadline is not None:
        wire.arrived()
        sent += queue.tick(100.1)
    assert sent == MOST
