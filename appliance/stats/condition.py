"""Reports the condition of this node to `linger`, which sends it to the other nodes for their pages."""

import contextlib
import time
from typing import Final

import gevent

from appliance.core.status.headline import headline
from appliance.model.paths import Paths
from appliance.model.program_names import LINGER
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.control.control_client import ControlUnavailable, ask
from appliance.stats.figures import LatestFigures
from appliance.wire.lines.control import Question

_PAUSE: Final = 5.0  # seconds from one report to the next, at least
_PAUSE_AT_MOST: Final = 40.0
_COST: Final = 0.05
"""Largest share of a processor for collecting figures that no client has asked for."""

_ASKED: Final = 1.0  # seconds for an answer


def report_always(paths: Paths, figures: LatestFigures) -> None:
    """Report as long as the greenlet runs."""
    while True:
        begun = time.thread_time()
        report(paths, figures)
        pause = (time.thread_time() - begun) / _COST
        gevent.sleep(min(max(pause, _PAUSE), _PAUSE_AT_MOST))


def report(paths: Paths, figures: LatestFigures) -> None:
    """Report it once, if there are other nodes."""
    if not paths.control(LINGER).exists():
        return
    found = figures.get()
    if not isinstance(found.observations.snapshot, Snapshot) or found.observations.snapshot.linger is None:
        return
    level = headline(found.status, moment=str).level
    question = Question(command="condition", values={"condition": level.value})
    with contextlib.suppress(ControlUnavailable):  # it is reported again
        ask(paths.control(LINGER), question, timeout=_ASKED)
