"""The loop: descriptors before deadlines, deadlines on time, signals as values."""

import os
import signal
import socket
import time
from collections.abc import Iterator

import pytest

from appliance.net.loop.loop import Loop

pytestmark = pytest.mark.sockets


class Alarm:
    """Something that is due at its deadline, and notes when it was woken."""

    def __init__(self, deadline: float | None) -> None:
        self.deadline = deadline
        self.woken: list[float] = []

    def tick(self, now: float) -> None:
        """Note the moment."""
        self.woken.append(now)
        self.deadline = None


@pytest.fixture
def loop() -> Iterator[Loop]:
    """Return a loop."""
    made = Loop()
    yield made
    made.close()


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Return both ends of a pipe."""
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def test_a_deadline_is_kept(loop: Loop) -> None:
    """What is due is woken once, and not before its deadline."""
    alarm = Alarm(time.monotonic() + 0.0037)
    due = alarm.deadline
    loop.add(alarm)
    loop.turn()
    assert due is not None
    assert len(alarm.woken) == 1
    assert alarm.woken[0] >= due


def test_a_deadline_that_has_passed_is_due_at_once(loop: Loop) -> None:
    """A deadline of long ago does not wait."""
    alarm = Alarm(0.0)
    loop.add(alarm)
    loop.turn()
    assert alarm.woken


def test_what_can_be_read_is_read_before_what_is_late(loop: Loop, pipe: tuple[int, int]) -> None:
    """A deadline that reading moves is not acted upon, however long ago it was."""
    alarm = Alarm(time.monotonic() - 1)
    loop.add(alarm)

    def read() -> None:
        os.read(pipe[0], 1)
        alarm.deadline = None

    loop.read(pipe[0], read)
    os.write(pipe[1], b"x")
    loop.turn()
    assert alarm.woken == []


def test_what_arrives_while_the_loop_is_late_is_read_first(loop: Loop, pipe: tuple[int, int]) -> None:
    """A loop that slept too long looks again, although nothing could be read when it was woken."""
    late = Alarm(time.monotonic() + 0.002)
    loop.add(late)

    def read() -> None:
        os.read(pipe[0], 1)
        late.deadline = None

    loop.read(pipe[0], read)
    slow_read, slow_write = os.pipe()

    def dawdle() -> None:
        os.read(slow_read, 1)
        time.sleep(0.01)
        os.write(pipe[1], b"x")

    loop.read(slow_read, dawdle)
    os.write(slow_write, b"x")
    loop.turn()
    assert late.woken == []
    os.close(slow_read)
    os.close(slow_write)


def test_one_removed_is_not_woken(loop: Loop) -> None:
    """What was removed is left alone."""
    removed, stays = Alarm(0.0), Alarm(0.0)
    loop.add(removed)
    loop.add(stays)
    loop.remove(removed)
    loop.turn()
    assert (removed.woken, bool(stays.woken)) == ([], True)


def test_a_forgotten_descriptor_is_not_read_any_more(loop: Loop, pipe: tuple[int, int]) -> None:
    """Whoever is forgotten by another one's callback is not called for what was fetched together."""
    other_read, other_write = os.pipe()
    called: list[int] = []

    def forget_both(descriptor: int) -> None:
        called.append(descriptor)
        loop.forget(pipe[0])
        loop.forget(other_read)

    loop.read(pipe[0], lambda: forget_both(pipe[0]))
    loop.read(other_read, lambda: forget_both(other_read))
    os.write(pipe[1], b"x")
    os.write(other_write, b"x")
    loop.turn()
    assert len(called) == 1
    os.close(other_read)
    os.close(other_write)


def test_reading_and_writing_of_one_descriptor_are_separate(loop: Loop) -> None:
    """Ending one leaves the other."""
    ours, theirs = socket.socketpair()
    called: list[str] = []
    loop.read(ours.fileno(), lambda: called.append("read"))
    loop.write(ours.fileno(), lambda: called.append("write"))
    loop.turn()
    loop.write(ours.fileno(), None)
    theirs.send(b"x")
    loop.turn()
    assert called == ["write", "read"]
    loop.forget(ours.fileno())
    loop.forget(ours.fileno())
    ours.close()
    theirs.close()


def test_a_signal_arrives_in_the_loop(loop: Loop) -> None:
    """A signal's number is given to the callback by the loop."""
    arrived: list[int] = []

    def note(number: int) -> None:
        arrived.append(number)
        loop.stop()

    before = signal.getsignal(signal.SIGUSR1)
    loop.on_signals([signal.SIGUSR1], note)
    try:
        os.kill(os.getpid(), signal.SIGUSR1)
        loop.run()
    finally:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGUSR1, before)
    assert arrived == [signal.SIGUSR1]


class Slow(Alarm):
    """Something whose work takes longer than a turn is to take."""

    def tick(self, now: float) -> None:
        """Take long."""
        super().tick(now)
        until = time.monotonic() + 0.003
        while time.monotonic() < until:
            pass


def test_what_is_prompt_does_not_wait_for_many(loop: Loop) -> None:
    """Of many that are due the prompt one is woken first, the others in the order of their deadlines."""
    slow, prompt = [Slow(float(at)) for at in (2, 1, 3)], Alarm(4.0)
    for each in slow:
        loop.add(each)
    loop.add(prompt, prompt=lambda: True)
    woken = []
    for _ in slow:
        prompt.deadline = 4.0
        loop.turn()
        woken.append(([bool(each.woken) for each in slow], len(prompt.woken)))
    assert woken == [([False, True, False], 1), ([True, True, False], 2), ([True, True, True], 3)]


def test_what_was_removed_meanwhile_is_not_woken(loop: Loop) -> None:
    """One that another one has removed in the same turn is left alone."""
    second = Alarm(1.0)

    class First(Alarm):
        def tick(self, now: float) -> None:
            super().tick(now)
            loop.remove(second)

    first = First(0.0)
    loop.add(first)
    loop.add(second)
    loop.turn()
    assert (len(first.woken), second.woken) == (1, [])


class Endless(Slow):
    """Something that is due again as soon as it was woken, and since long ago."""

    def tick(self, now: float) -> None:
        """Take long, and have more to do."""
        super().tick(now)
        self.deadline = 0.0


def test_what_is_always_due_starves_nobody(loop: Loop) -> None:
    """Whoever is due is woken once before anybody a second time, however early the others' deadlines are."""
    endless, patient = [Endless(0.0) for _ in range(2)], [Slow(float(at)) for at in (1, 2)]
    for each in (*endless, *patient):
        loop.add(each)
    for _ in range(4):
        loop.turn()
    assert [len(each.woken) for each in (*endless, *patient)] == [1, 1, 1, 1]
