"""Work beside a loop."""

import threading

import pytest

from appliance.net.loop.background_work import BackgroundWork
from appliance.net.loop.loop import Loop

pytestmark = pytest.mark.sockets


def test_the_result_is_told_in_the_loop():
    """The work is done by another thread, and its result arrives in the loop's own."""
    loop, told = Loop(), []

    def done(worker: int) -> None:
        told.append((worker, threading.get_ident()))
        loop.stop()

    BackgroundWork(loop, threading.get_ident, done)
    loop.run()
    loop.close()
    ((worker, teller),) = told
    assert teller == threading.get_ident() != worker
