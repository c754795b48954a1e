"""What makes this process be on time, each part as far as it is permitted.

Its children are ordinary again: scheduling is reset on fork, locked memory is not inherited, and they give
up the rest themselves (net/process/ordinary_scheduling).
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

from appliance.net.privileges import needed_capabilities
from appliance.net.privileges.needed_capabilities import Capability
from appliance.net.process.prctl import ProcessOption, prctl

PRIORITY: Final = 50
"""Of SCHED_RR: that of the kernel's threaded interrupts, above every ordinary process."""

OOM_SCORE: Final = -900
"""Nearly last to be killed for memory; never (-1000) would make a leak of ours everybody else's end."""

REST_WITHIN: Final = 2.0
"""Seconds without a rest after which it is a bug that runs in real time, or a flood, and no hurry."""

TRY_AGAIN: Final = 10.0
"""Seconds for which the scheduling is ordinary then."""

_OOM_SCORE: Final = Path("/proc/self/oom_score_adj")
_LOCK_CURRENT_AND_FUTURE: Final = 1 | 2  # MCL_CURRENT | MCL_FUTURE of mman.h
_STACK: Final = 512 << 10  # bytes; a thread's usual 8 MB are all locked when it starts, which takes 5 ms
_COLLECT_AFTER: Final = (10_000, 50, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Realtime:
    """What was permitted; `refused` says what was not and why, in words."""

    scheduler: bool
    memory: bool
    oom: bool
    refused: tuple[str, ...]


def apply() -> Realtime:
    """Be scheduled in real time, lock the memory, be spared when memory is short; call it once, at start."""
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
    """Keep what lives long out of the garbage collector's way; call it after starting and after a reload.

    What it finds then is collected first, so garbage is not kept.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)


class Punctuality:
    """Real-time scheduling that is lost to whatever spins, and tried again after a while.

    What spins may be a bug, or a flood of packets that ends. `on_change` is told what is true from then on;
    `deadline` and `tick` are a loop's.
    """

    def __init__(self, applied: Realtime, on_change: Callable[[Realtime], None]) -> None:
        self._applied = applied
        self._on_change = on_change
        self.deadline: float | None = None

    def lost(self, now: float) -> None:
        """Take note of SIGXCPU, whose handler has made the scheduling ordinary."""
        self.deadline = now + TRY_AGAIN
        reason = f"real-time scheduling: given up for now, {REST_WITHIN:g} s without a rest"
        self._on_change(replace(self._applied, scheduler=False, refused=(*self._applied.refused, reason)))

    def tick(self, now: float) -> None:
        """Try again."""
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
    # One that spins would leave the rest of its processor a twentieth of it, the supervisor perhaps.
    signal.signal(signal.SIGXCPU, _give_up)
    hard = resource.getrlimit(resource.RLIMIT_RTTIME)[1]
    wanted = int(REST_WITHIN * 1e6)
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_RTTIME, (soft, hard))


def _give_up(_: int, __: FrameType | None) -> None:
    """Be ordinary at once: whoever spins may never come to read a note."""
    os.sched_setscheduler(0, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, os.sched_param(0))


def _lock() -> None:
    # Under a limit the lock would succeed now, and fail some later allocation.
    unlimited = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] == resource.RLIM_INFINITY
    if not unlimited and not needed_capabilities.has(Capability.CAP_IPC_LOCK):
        raise PermissionError(0, "not permitted beyond the limit of RLIMIT_MEMLOCK")
    library = ctypes.CDLL(None, use_errno=True)
    if library.mlockall(_LOCK_CURRENT_AND_FUTURE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    threading.stack_size(_STACK)


def _spare() -> None:
    _OOM_SCORE.write_text(str(OOM_SCORE))


def _be_punctual() -> None:
    """Have timers rounded to the nanosecond, where scheduling is not real-time (which never rounds)."""
    prctl(ProcessOption.SET_TIMERSLACK, 1)
