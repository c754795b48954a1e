"""Collects the events of all programs into the persistent file. `reload` does this, as nothing waits for it.

A thread writes to the disk. After a kill it continues where it was: events in the file are not written again,
and those published meanwhile are still on the boards.
"""

import time
from collections import deque
from typing import Final

import gevent
from gevent import get_hub
from gevent.event import Event
from structlog.typing import FilteringBoundLogger

from appliance.model.operator_events import OperatorEvent, Publish, publish_nowhere
from appliance.model.paths import Paths
from appliance.net.events.event_file import EventFile, complete_since, tail
from appliance.net.events.event_follower import EventFollower
from appliance.net.loop.turns import until_next

_PAUSE: Final = 0.5  # seconds between two reads of the boards; who shows events reads the boards too
_RETRY: Final = 5.0  # seconds after which a file that could not be written is tried again
_MOST_UNWRITTEN: Final = 4000


class EventKeeper:
    """The events of one runtime directory, collected into the state directory.

    `then` receives each event that the file did not have at the start. Events on the boards at the start that
    are older than a file without its oldest events were once in it.
    """

    def __init__(self, paths: Paths, log: FilteringBoundLogger, then: Publish = publish_nowhere) -> None:
        self._log = log
        self._then = then
        self._path = paths.events
        self._file = EventFile(paths.events)
        self._runtime = paths.runtime
        self._unwritten: deque[OperatorEvent] = deque(maxlen=_MOST_UNWRITTEN)
        self._since = float("-inf")
        self._write_at = 0.0
        self._trouble = ""
        self._end = Event()
        self._greenlet = gevent.spawn(self._keep)
        self._greenlet.link_exception(lambda ended: log.error("events-crashed", exc_info=ended.exception))

    @property
    def trouble(self) -> str:
        """Why events cannot be written now, "" if they can."""
        return self._trouble

    def close(self) -> None:
        """Collect for a last time; events on the boards stay there."""
        self._end.set()  # killed in the middle of a write, it would write the same again
        self._greenlet.join()

    def _keep(self) -> None:
        known, self._since = get_hub().threadpool.apply(self._known)
        follower = EventFollower(self._runtime, known=known)
        try:
            while not self._end.is_set():
                now = time.monotonic()
                self._collect(follower, now)
                if self._unwritten and now >= self._write_at:
                    self._write(now)
                self._end.wait(until_next(_PAUSE))
        finally:
            # The other programs have ended by now, and the runtime directory may not outlive this one.
            self._collect(follower, time.monotonic())
            if self._unwritten:
                self._report(self._append(list(self._unwritten)))
            follower.close()

    def _collect(self, follower: EventFollower, now: float) -> None:
        for event in follower.new(now):
            if event.when >= self._since:
                self._unwritten.append(event)
                self._then(event)
        self._since = float("-inf")  # only events on the boards before may have been kept and removed

    def _known(self) -> tuple[set[str], float]:
        """Return the ids of the kept events, and the time since which they are complete."""
        kept = tail(self._path)
        return {each.id for each in kept}, complete_since(self._path, kept)

    def _write(self, now: float) -> None:
        events = list(self._unwritten)
        trouble: str = get_hub().threadpool.apply(self._append, (events,))
        if trouble:
            self._write_at = now + _RETRY
        else:
            self._unwritten.clear()  # no other program adds to it
        self._report(trouble)

    def _append(self, events: list[OperatorEvent]) -> str:
        """Return why it failed, "" if it did not: gevent prints exceptions raised in a thread."""
        try:
            self._file.append(events)
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def _report(self, trouble: str) -> None:
        if trouble and not self._trouble:
            self._log.warning("events-not-kept", path=str(self._path), reason=trouble)
        if self._trouble and not trouble:
            self._log.info("events-kept", path=str(self._path))
        self._trouble = trouble
