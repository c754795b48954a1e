"""Settings that let this process run on time, each if permitted.

Its children are ordinary: scheduling is reset on fork, locked memory is not inherited, and they reset the
rest themselves (net/process/ordinary_scheduling).
"""

import ctypes
import gc
import os
import resource
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Final

from appliance.model.capability import Capability
from appliance.net.privileges import process_capabilities
from appliance.net.process.prctl import ProcessOption, prctl

PRIORITY: Final = 50
"""Priority of SCHED_RR (sched(7)): that of the kernel's threaded interrupts, above every ordinary process."""

OOM_SCORE: Final = -900
"""Nearly last to be killed for memory; with never (-1000), a leak of ours would kill all others."""

REST_WITHIN: Final = 2.0
"""Seconds without a wait after which real-time scheduling is dropped: a bug or a flood keeps us busy."""

TRY_AGAIN: Final = 10.0
"""Seconds until real-time scheduling is then tried again."""

_OOM_SCORE: Final = Path("/proc/self/oom_score_adj")
_LOCK_CURRENT_AND_FUTURE: Final = 1 | 2  # MCL_CURRENT | MCL_FUTURE of mman.h
_STACK: Final = 512 << 10  # bytes; a thread's usual 8 MB are all locked when it starts, which takes 5 ms
_COLLECT_AFTER: Final = (10_000, 50, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Realtime:
    """The permitted settings; `refused` lists the others with reasons, as text."""

    scheduler: bool
    memory: bool
    oom: bool
    refused: tuple[str, ...]


def apply() -> Realtime:
    """Get real-time scheduling, lock the memory, get OOM protection; called once, at the start."""
    refused: list[str] = []
    _be_punctual()
    applied = Realtime(
        scheduler=_tried(_schedule, "real-time scheduling (CAP_SYS_NICE)", refused),
        memory=_tried(_lock, "locked memory (CAP_IPC_LOCK)", refused),
        oom=_tried(_spare, "sparing from the OOM killer (CAP_SYS_RESOURCE)", refused),
        refused=tuple(refused),
    )
    settle()
    return applied


def settle() -> None:
    """Collect garbage now, and freeze the remaining objects; called after the start and after a reload.

    A full collection takes milliseconds, in which no advertisement is sent. Later ones skip frozen objects,
    and so are short.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)


class Punctuality:
    """Drops real-time scheduling if this process never waits, and tries it again after TRY_AGAIN.

    The reason may be a bug, or a flood of packets that ends. `on_change` is called with the new settings; the
    loop calls `deadline` and `tick` (`net.loop.schedule.Timed`).
    """

    def __init__(self, applied: Realtime, on_change: Callable[[Realtime], None]) -> None:
        self._applied = applied
        self._on_change = on_change
        self.deadline: float | None = None

    def lost(self, now: float) -> None:
        """Note that the handler of SIGXCPU has made the scheduling ordinary; `now` is monotonic seconds."""
        self.deadline = now + TRY_AGAIN
        reason = f"real-time scheduling: given up for now, {REST_WITHIN:g} s without a rest"
        self._on_change(replace(self._applied, scheduler=False, refused=(*self._applied.refused, reason)))

    def tick(self, now: float) -> None:
        """Try real-time scheduling again."""
        try:
            _schedule()
        except OSError:
            self.deadline = now + TRY_AGAIN
            return
        self.deadline = None
        self._on_change(self._applied)


def _tried(attempt: Callable[[], None], what: str, refused: list[str]) -> bool:
    try:
        attempt()
    except OSError as error:
        refused.append(f"{what}: {error.strerror}")
        return False
    return True


def _schedule() -> None:
    os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(PRIORITY))
    # A real-time process that never waits would leave a twentieth of its processor to all others
    # (sched_rt_runtime_us), the supervisor among them. RLIMIT_RTTIME makes the kernel send SIGXCPU before.
    signal.signal(signal.SIGXCPU, _give_up)
    hard = resource.getrlimit(resource.RLIMIT_RTTIME)[1]
    wanted = int(REST_WITHIN * 1e6)
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_RTTIME, (soft, hard))


def _give_up(_: int, __: FrameType | None) -> None:
    """Switch to ordinary scheduling in the handler: a program that never waits would not read a note."""
    os.sched_setscheduler(0, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, os.sched_param(0))


def _lock() -> None:
    # With a limit mlockall(2) succeeds while all is below it, and a later allocation fails.
    unlimited = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] == resource.RLIM_INFINITY
    if not unlimited and not process_capabilities.has(Capability.CAP_IPC_LOCK):
        raise PermissionError(0, "not permitted beyond the limit of RLIMIT_MEMLOCK")
    library = ctypes.CDLL(None, use_errno=True)
    if library.mlockall(_LOCK_CURRENT_AND_FUTURE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    threading.stack_size(_STACK)


def _spare() -> None:
    _OOM_SCORE.write_text(str(OOM_SCORE))


def _be_punctual() -> None:
    """Make timers exact to the nanosecond. Real-time scheduling has no timer slack, ordinary 50 us."""
    prctl(ProcessOption.SET_TIMERSLACK, 1)
