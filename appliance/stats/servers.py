"""Operators' changes to servers through HAProxy's interfaces, passed on to the responsible programs."""

from functools import partial
from pathlib import Path
from typing import Final

import gevent

from appliance.model.paths import Paths
from appliance.model.program_names import FORWARD, HEALTH
from appliance.model.server_states import AdminState
from appliance.model.server_weights import OperatorWeight
from appliance.net.control.control_client import ControlUnavailable, ask
from appliance.wire.lines import listed_session
from appliance.wire.lines.control import Answer, ControlError, Question
from appliance.wire.lines.listed_session import ListedSession

_TIMEOUT: Final = 5.0


class NotDone(Exception):  # noqa: N818  # an outcome, reported to whoever asked
    """The responsible program did not do it; the message has the reason."""


def set_state(paths: Paths, *, pool: str, server: str, state: AdminState) -> None:
    """Put a server into a state, which survives reloads and restarts; raises NotDone."""
    values = {"pool": pool, "server": server, "state": state.name.lower()}
    have_done(paths.control(HEALTH), Question(command="set-state", values=values), timeout=_TIMEOUT)


def set_weight(paths: Paths, *, pool: str, server: str, weight: OperatorWeight) -> None:
    """Give a server a weight, which survives reloads and restarts; raises NotDone."""
    values = {"pool": pool, "server": server, "weight": str(weight)}
    have_done(paths.control(HEALTH), Question(command="set-weight", values=values), timeout=_TIMEOUT)


def have_done(control: Path, question: Question, *, timeout: float) -> Answer:
    """Have a program execute a command; raises NotDone."""
    try:
        answer = ask(control, question, timeout=timeout)
    except ControlUnavailable as error:
        raise NotDone(str(error)) from error
    if not answer.ok:
        raise NotDone(answer.reason)
    return answer


def end_sessions(paths: Paths, *, pool: str, server: str) -> int:
    """End the sessions of a server, in all workers and the kernel; return their number."""
    answers = _ask_all(paths, Question(command="kill", values={"server": f"{pool}/{server}"}))
    counts = (answer.values.get("killed") for answer in answers)
    return sum(count for count in counts if isinstance(count, int))


def sessions(paths: Paths) -> list[ListedSession]:
    """Return the sessions of all workers and of the kernel, the oldest first, without invalid ones."""
    found: list[ListedSession] = []
    for answer in _ask_all(paths, Question(command="sessions")):
        try:
            found += listed_session.decode(answer)
        except ControlError:
            continue
    return sorted(found, key=lambda session: session.age or 0.0, reverse=True)


def _ask_all(paths: Paths, question: Question) -> list[Answer]:
    def asked(name: str) -> Answer | None:
        try:
            return ask(paths.runtime / name, question, timeout=_TIMEOUT)
        except ControlUnavailable:
            return None

    names = sorted(each.name for each in paths.runtime.glob("worker-*.control"))
    questions = [gevent.spawn(partial(asked, name)) for name in (*names, paths.control(FORWARD).name)]
    gevent.joinall(questions, raise_error=True)
    return [each.value for each in questions if each.value is not None]
