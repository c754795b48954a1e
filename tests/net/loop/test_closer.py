"""Closing beside a loop."""

import os
import threading

import pytest
from support.processes.waiting import wait_until

from appliance.net.loop.closer import Closer

pytestmark = pytest.mark.sockets


class Slow:
    """Something that takes until `released` to close, and notes who closed it."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.closed_by: int | None = None

    def close(self) -> None:
        """Take long."""
        self.released.wait(10)
        self.closed_by = threading.get_ident()


def test_what_is_slow_to_close_delays_nobody():
    """Closing returns at once, and is done by another thread, in order."""
    closer, first, second = Closer(), Slow(), Slow()
    closer.close(first)
    closer.close(second)
    second.released.set()
    assert (first.closed_by, second.closed_by) == (None, None)
    first.released.set()
    wait_until(lambda: first.closed_by and second.closed_by, what="both are closed")
    assert first.closed_by == second.closed_by != threading.get_ident()


def test_the_loop_waits_for_no_start_of_a_thread():
    """Its thread is there before the first close, which starts none, and is scheduled as the loop's is."""
    before = set(threading.enumerate())
    closer, what = Closer(), Slow()
    (thread,) = set(threading.enumerate()) - before
    usual = os.sched_getscheduler(0)
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    try:
        closer.schedule_as_caller()
    finally:
        os.sched_setscheduler(0, usual, os.sched_param(0))
    closer.close(what)
    assert set(threading.enumerate()) == {*before, thread}
    assert thread.native_id is not None
    assert os.sched_getscheduler(thread.native_id) == os.SCHED_BATCH
    what.released.set()
