"""Virtual IPs handed over and taken back for whoever asks through the page: done by the program `vrrp`."""

from typing import Final

from appliance.model.paths import Paths
from appliance.model.program_names import VRRP
from appliance.net.control.control_client import ControlUnavailable, ask
from appliance.stats.servers import NotDone
from appliance.wire.lines.control import Answer, Question

_TIMEOUT: Final = 25.0
"""Seconds for the successor to be heard: less than an answer to a browser may take."""


def move(paths: Paths, name: str) -> str:
    """Hand a virtual IP over to another router, and return which one, "" for unknown; raises NotDone."""
    return str(_told(paths, "move", name).values.get("successor") or "")


def reclaim(paths: Paths, name: str) -> None:
    """Forget that a virtual IP was moved away; raises NotDone."""
    _told(paths, "reclaim", name)


def _told(paths: Paths, command: str, name: str) -> Answer:
    question = Question(command=command, values={"name": name})
    try:
        answer = ask(paths.control(VRRP), question, timeout=_TIMEOUT)
    except ControlUnavailable as error:
        raise NotDone(str(error)) from error
    if not answer.ok:
        raise NotDone("; ".join(problem.message for problem in answer.errors))
    return answer
