"""The reset of a real-time program's child: scheduling, blocked signals, protection from the OOM killer."""

import contextlib
import os
import resource
import signal
from pathlib import Path
from typing import Final

_SCORE: Final = Path("/proc/self/oom_score_adj")


def be_ordinary() -> None:
    """Use ordinary scheduling, block no signal, drop protection from the OOM killer; children inherit this.

    Only the other direction needs a capability.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if os.sched_getscheduler(0) != os.SCHED_OTHER:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    hard = resource.getrlimit(resource.RLIMIT_RTTIME)[1]
    resource.setrlimit(resource.RLIMIT_RTTIME, (hard, hard))
    with contextlib.suppress(OSError, ValueError):  # without /proc it was not changed either
        if int(_SCORE.read_text()) < 0:
            _SCORE.write_text("0")
