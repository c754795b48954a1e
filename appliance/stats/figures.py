"""The current figures of the appliance, as `stats` sees them, collected as rarely as possible.

However many clients ask, everything is collected at most twice a second; pages made from the figures are
cached with them. In addition, boards alone are read once a second for rates and peaks, or more rarely if that
is much work, and `forward` is asked if the kernel counts connections. For 40,000 servers each of these is
seconds of work: it is done in a thread, one piece at a time, so the loop continues and the watchdog sees it.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import gevent
from gevent.lock import BoundedSemaphore
from structlog.typing import FilteringBoundLogger

from appliance import __version__
from appliance.core.haproxy import activity
from appliance.core.haproxy.activity import Activity
from appliance.core.haproxy.process import ProcessFigures, process_figures
from appliance.core.haproxy.statistics import Observed, Row, rows
from appliance.core.history.minutes import Minutes, Shares
from appliance.core.metrics.programs import WorkerDescriptors
from appliance.core.status.assessment import assess
from appliance.core.status.observations import Observations
from appliance.core.status.status import Status
from appliance.model.operator_events import OperatorEvent
from appliance.model.paths import Paths
from appliance.model.program_names import FORWARD
from appliance.model.snapshot.snapshot import Snapshot, encode, without_secrets
from appliance.net.control.control_client import status_of
from appliance.net.events.event_file import tail
from appliance.net.events.event_follower import published
from appliance.net.files import state_files
from appliance.net.files.atomic_write import remove_scratch_files, write_atomically
from appliance.net.files.state_files import FileUnusable
from appliance.net.loop.thread_pool import computed
from appliance.net.loop.turns import until_next
from appliance.net.observing.observation import observe, observe_boards
from appliance.net.process.this_node import this_node
from appliance.wire import history_ring
from appliance.wire.history_ring import SIZE, HistoryError, Minute
from appliance.wire.lines.forward_status import ForwardStatus

_LIMIT: Final = "Max open files"


class HistoryFile:
    """The file of the last hours; `failure` is why it cannot be written, None while it can.

    The file is created at its full size, so a disk that fills up later does no harm. A damaged one, or one of
    another version, is set aside. If it cannot be written, that is reported and tried again each minute.
    """

    def __init__(self, path: Path, log: FilteringBoundLogger) -> None:
        self.path = path
        self._log = log
        self.failure: str | None = None

    def load(self) -> tuple[Minute, ...]:
        """Return the minutes kept; if the file is missing or unreadable, create one without any."""
        try:
            data = state_files.read(self.path, limit=SIZE)
            if data is not None:
                return history_ring.decode(data)
        except (FileUnusable, HistoryError) as error:
            aside = state_files.set_aside(self.path)
            self._log.warning("history-damaged", path=str(self.path), reason=str(error), aside=str(aside))
        self._kept(self._make)
        return ()

    def write(self, minute: Minute) -> None:
        """Write a minute over the oldest one."""
        self._kept(partial(self._write, minute))

    def _kept(self, action: Callable[[], None]) -> None:
        """Do something with the file, and note whether it can be written."""
        try:
            action()
        except OSError as error:
            reason = error.strerror or str(error)
            if self.failure != reason:
                self._log.warning("state-not-kept", reason=f"{self.path}: {reason}")
            self.failure = reason
        else:
            self.failure = None

    def _make(self) -> None:
        remove_scratch_files(self.path)
        write_atomically(self.path, history_ring.empty())

    def _write(self, minute: Minute) -> None:
        try:
            descriptor = self._open()
        except FileNotFoundError:
            self._make()
            descriptor = self._open()
        try:
            os.pwrite(descriptor, history_ring.encode(minute), history_ring.place(minute.number))
        finally:
            os.close(descriptor)

    def _open(self) -> int:
        # Whatever has been put at the path since the last minute: never wait, or follow a link elsewhere.
        return os.open(self.path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)


def open_descriptors(pid: int, *, proc: Path = Path("/proc")) -> tuple[int, int] | None:
    """Return the number of open descriptors and the limit (proc(5)); None if gone, or another user's."""
    directory = proc / str(pid) / "fd"
    try:
        # Since Linux 6.2 the size of the directory is their number; before it is 0, and they are counted.
        count = directory.stat().st_size or sum(1 for _ in directory.iterdir())
        lines = (proc / str(pid) / "limits").read_text().splitlines()
    except OSError:
        return None
    soft = [line.removeprefix(_LIMIT).split()[0] for line in lines if line.startswith(_LIMIT)]
    return (count, int(soft[0])) if soft and soft[0].isdecimal() else None


FRESH: Final = 0.5
"""Seconds for which collected figures answer further requests."""

FIRST_LOOK: Final = 3.0
"""Seconds from the start to the first read: the processors are for programs that start and move traffic."""

_LOOK: Final = 1.0  # seconds from one read to the next, at least
_LOOK_AT_MOST: Final = 10.0
_LOOK_COST: Final = 0.2
"""Largest share of a processor for reading boards: at 40,000 servers each read takes a second of it."""
_EVENTS: Final = 10
_TAIL: Final = 16 << 10
"""Bytes of the kept events that are read: several times as many as the page shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The figures of one moment; `rows` are those of HAProxy's statistics, none without a configuration.

    `at` is monotonic seconds. `history` are the minutes of the last hours, the oldest first. `shares` are by
    pool and server the shares of recent new connections. `pages` holds the pages made from these figures.
    """

    at: float
    status: Status
    observations: Observations
    rows: tuple[Row, ...]
    process: ProcessFigures
    configuration_hash: str | None
    descriptors: tuple[WorkerDescriptors, ...]
    history: tuple[Minute, ...]
    shares: Mapping[str, Mapping[str, float]]
    pages: dict[str, bytes]


class LatestFigures:
    """The figures, collected on demand, by one greenlet at a time."""

    def __init__(self, paths: Paths, file: HistoryFile, *, on_fault: Callable[[Exception], None]) -> None:
        self._paths = paths
        self._file = file
        self._minutes = Minutes(file.load())
        self._shares = Shares()
        self._on_fault = on_fault
        self._latest: Figures | None = None
        self._lock = BoundedSemaphore()
        self._hashed: tuple[Snapshot, str] | None = None
        self._activity = Activity()
        self._forward: ForwardStatus | None = None
        self._loop = gevent.spawn(self._look_always)

    def get(self) -> Figures:
        """Return the figures of the last half second, or new ones."""
        with self._lock:
            return self._fresh()

    def _fresh(self) -> Figures:
        if self._latest is None or time.monotonic() - self._latest.at > FRESH:
            observations = observe(self._paths)
            self._latest = computed(partial(self._look, observations))
        return self._latest

    def page(self, name: str, make: Callable[[Figures], bytes]) -> bytes:
        """Return a page made from the figures; it is made once for each, in a thread."""
        with self._lock:
            figures = self._fresh()
            if name not in figures.pages:
                figures.pages[name] = computed(partial(make, figures))
            return figures.pages[name]

    def events(self) -> list[OperatorEvent]:
        """Return the last events of the appliance, the latest first."""
        kept = (*tail(self._paths.events, limit=_TAIL), *published(self._paths.runtime))
        latest = sorted({each.id: each for each in kept}.values(), key=lambda each: each.when, reverse=True)
        return latest[:_EVENTS]

    def forget(self) -> None:
        """Collect new figures for the next request: something was changed."""
        with self._lock:  # what is being collected may be of before
            self._latest = None

    def close(self) -> None:
        """Stop collecting."""
        self._loop.kill()

    def _look(self, observations: Observations) -> Figures:
        at, now = time.monotonic(), time.time()
        status = assess(observations, now)
        snapshot = observations.snapshot if isinstance(observations.snapshot, Snapshot) else None
        observed = (
            Observed(status=status, snapshot=snapshot, activity=self._activity, now=now) if snapshot else None
        )
        return Figures(
            at=at,
            status=status,
            observations=observations,
            rows=tuple(rows(observed)) if observed else (),
            process=process_figures(
                status,
                observations,
                self._activity,
                version=__version__,
                node=this_node(),
                pid=os.getpid(),
            ),
            configuration_hash=self._hash(snapshot) if snapshot else None,
            descriptors=tuple(_descriptors(observations)),
            history=self._minutes.known,
            shares=self._shares.by_pool(),
            pages={},
        )

    def _hash(self, snapshot: Snapshot) -> str:
        if self._hashed is None or self._hashed[0] is not snapshot:
            self._hashed = snapshot, _hash(snapshot)
        return self._hashed[1]

    def _look_at_boards(self, counted: Observations) -> None:
        now = time.time()
        status = assess(counted, now)
        self._activity.look(activity.counted(status), now)
        self._shares.look(status, now)
        ended = self._minutes.look(status, now)
        if ended is not None:
            self._file.write(ended)

    def _counted(self) -> Observations:
        """Return the counters of all programs; while `forward` does not answer, its last ones are kept."""
        boards = computed(partial(observe_boards, self._paths))
        if not isinstance(boards.snapshot, Snapshot) or not boards.snapshot.forwarded:
            self._forward = None
            return boards
        self._forward = status_of(self._paths.control(FORWARD), ForwardStatus, timeout=_LOOK) or self._forward
        return replace(boards, answers={FORWARD: self._forward} if self._forward else {})

    def _look_always(self) -> None:
        gevent.sleep(FIRST_LOOK)
        while True:
            begun = time.process_time()
            try:
                with self._lock:
                    computed(partial(self._look_at_boards, self._counted()))
            except Exception as error:  # noqa: BLE001  # the boundary: the next look comes nevertheless
                self._on_fault(error)
            pause = (time.process_time() - begun) / _LOOK_COST
            gevent.sleep(min(max(pause, until_next(_LOOK)), _LOOK_AT_MOST))


def _descriptors(observations: Observations) -> Iterator[WorkerDescriptors]:
    for each in observations.workers:
        found = open_descriptors(each.pid)
        if found is not None:
            opened, limit = found
            yield WorkerDescriptors(
                program=each.program,
                generation=each.generation,
                index=each.index,
                open=opened,
                limit=limit,
            )


def _hash(snapshot: Snapshot) -> str:
    """Return a hash of a configuration's settings, independent of its number, its file and its secrets."""
    content = encode(replace(without_secrets(snapshot), number=0, source=""))
    return hashlib.sha256(content).hexdigest()
