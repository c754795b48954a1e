"""Questions to the programs of a running appliance, and the error message if one does not answer."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, TypeVar

import gevent

from appliance.console.output.refusal import LOOK, Refused
from appliance.console.runtime_access import require_access
from appliance.model.paths import Paths
from appliance.net.control.control_client import ControlUnavailable, ask
from appliance.wire.lines import status_answer
from appliance.wire.lines.control import Answer, Question
from appliance.wire.lines.status_answer import Status, StatusAnswerError

_WAKE_SECONDS: Final = 0.2  # longest delay until Ctrl-C is noticed

_Value = TypeVar("_Value")


def at_once(questions: Iterable[Callable[[], _Value]]) -> list[_Value]:
    """Call all at the same time, each in a greenlet, and return their results in the same order."""
    interrupt_quietly()
    asked = [gevent.spawn(question) for question in questions]
    return [greenlet.get() for greenlet in asked]


def ask_program(path: Path, question: Question, *, timeout: float) -> Answer:
    """Return the program's answer, good or bad; raises ClickException without one."""
    interrupt_quietly()
    require_access(path.parent)
    try:
        return ask(path, question, timeout=timeout)
    except ControlUnavailable as error:
        raise Refused(absent(path.stem, path, error), step=LOOK) from error


def program_status(paths: Paths, program: str, kind: type[Status], *, timeout: float = 10.0) -> Status:
    """Return the program's answer to `status`; raises ClickException."""
    answer = ask_program(paths.control(program), Question(command="status"), timeout=timeout)
    return decoded_status(paths, program, answer, kind)


def decoded_status(paths: Paths, program: str, answer: Answer, kind: type[Status]) -> Status:
    """Return the status in an answer of the program; raises ClickException."""
    if not answer.ok:
        raise Refused(answer.reason, step=LOOK)
    try:
        return status_answer.decode(answer.values, kind)
    except StatusAnswerError as error:
        said = f"the program {program} is of another version: {error}"
        raise Refused(said, step=f"`{paths.supervisorctl} restart {program}`") from error


def absent(program: str, path: Path, error: Exception) -> str:
    """Return the message about a program that does not answer."""
    why = str(error).removeprefix(f"{path}: ")
    return (
        f"the program {program} does not answer at {path} ({why}).\n"
        "Is the appliance running, and is this its --runtime-dir?"
    )


def interrupt_quietly() -> None:
    """Keep gevent's hub from printing a traceback for Ctrl-C; the command raises KeyboardInterrupt anyway."""
    hub = gevent.get_hub()
    hub.NOT_ERROR = (*hub.NOT_ERROR, KeyboardInterrupt)
    gevent.spawn(_wake_regularly)


def _wake_regularly() -> None:
    """Wake the loop regularly: a signal that arrives just before it waits would not wake it."""
    while True:
        gevent.sleep(_WAKE_SECONDS)
