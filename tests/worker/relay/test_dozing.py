"""The long sleep of a worker with nothing to do."""

import os
import time
from collections.abc import Iterator

import pytest

from appliance.worker.relay.dozing import LONGEST, Dozing

pytestmark = pytest.mark.sockets

_EVER = 3600.0


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Return both ends of a pipe, first the one to read."""
    ends = os.pipe()
    yield ends
    for each in ends:
        os.close(each)


def test_it_is_due_after_a_while_with_nothing_to_do(pipe: tuple[int, int]):
    """Each tick with a session, or after another one, puts it off by a second."""
    dozing = Dozing(pipe[0], pause=0.05)
    dozing.note(0, 100.0, busy=False)
    assert not dozing.is_due(100.9)
    dozing.note(0, 100.9, busy=True)
    dozing.note(0, 101.0, busy=False)
    assert not dozing.is_due(101.8)
    dozing.note(1, 101.5, busy=False)
    assert not dozing.is_due(102.4)
    assert dozing.is_due(102.5)


def test_an_event_ends_it(pipe: tuple[int, int]):
    """It returns with the first event, and leaves it to be read."""
    os.write(pipe[1], b"x")
    Dozing(pipe[0], pause=0.05).sleep(time.monotonic() + _EVER, None)
    assert os.read(pipe[0], 1) == b"x"


def test_clients_that_wait_for_other_workers_end_it(pipe: tuple[int, int]):
    """They are looked for again and again, and the worker stays awake for them."""
    looks = iter([False, False, True])
    dozing = Dozing(pipe[0], pause=0.001)
    dozing.sleep(time.monotonic() + _EVER, lambda: next(looks))
    assert next(looks, None) is None
    assert not dozing.is_due(time.monotonic())


def test_it_ends_at_its_moment(pipe: tuple[int, int]):
    """Without an event it ends then."""
    until = time.monotonic() + LONGEST / 10
    Dozing(pipe[0], pause=0.001).sleep(until, lambda: False)
    assert time.monotonic() >= until
