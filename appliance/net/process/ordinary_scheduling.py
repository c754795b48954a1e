"""Gives up what a real-time program's child should not keep: scheduling, blocked signals, place in an OOM."""

import contextlib
import os
import resource
import signal
from pathlib import Path
from typing import Final

_SCORE: Final = Path("/proc/self/oom_score_adj")


def be_ordinary() -> None:
    """Be scheduled as others are, end by signals, and be killed before others when memory is short.

    So are children, then. None of it needs a right: it is taking more than others that does.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if os.sched_getscheduler(0) != os.SCHED_OTHER:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    hard = resource.getrlimit(resource.RLIMIT_RTTIME)[1]
    resource.setrlimit(resource.RLIMIT_RTTIME, (hard, hard))
    with contextlib.suppress(OSError, ValueError):  # no /proc: nobody has changed it there either
        if int(_SCORE.read_text()) < 0:
            _SCORE.write_text("0")
