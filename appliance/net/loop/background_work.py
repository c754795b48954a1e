"""Work that may block, done in a thread next to a loop, which is called at its end."""

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from appliance.net.loop.loop import Loop

_Result = TypeVar("_Result")


class BackgroundWork(Generic[_Result]):
    """Runs `work` in a new thread, then calls `done` with its result from the loop.

    `work` must not raise, and must not touch what the loop uses. The thread signals its end by closing a
    pipe, whose other end the loop reads.
    """

    def __init__(self, loop: Loop, work: Callable[[], _Result], done: Callable[[_Result], None]) -> None:
        self._loop = loop
        self._work = work
        self._done = done
        self._results: list[_Result] = []
        self._ours, self._its = os.pipe2(os.O_CLOEXEC)
        loop.read(self._ours, self._ended)
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            self._results.append(self._work())
        finally:
            os.close(self._its)

    def _ended(self) -> None:
        self._loop.forget(self._ours)
        os.close(self._ours)
        for result in self._results:
            self._done(result)
