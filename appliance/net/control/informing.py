"""Tells `vrrp` that a program knows of all connections, so that its virtual routers may preempt others."""

import contextlib
from collections.abc import Iterable
from typing import Final

from appliance.model.paths import Paths
from appliance.model.program_names import VRRP
from appliance.net.control.control_client import ControlUnavailable, ask
from appliance.wire.lines.control import Question

_ASKED: Final = 1.0  # seconds for an answer


def inform(paths: Paths, names: Iterable[str], *, by: str) -> None:
    """Tell it of these virtual routers; its board shows those that still wait, until it has heard."""
    for name in names:
        with contextlib.suppress(ControlUnavailable):
            question = Question(command="informed", values={"name": name, "by": by})
            ask(paths.control(VRRP), question, timeout=_ASKED)
