"""Questions to the programs of a running appliance, and what an operator reads when nobody answers."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, TypeVar

import click
import gevent

from appliance.console.access import look_into
from appliance.net.control.sockets import ControlUnavailable, ask
from appliance.wire.lines.control import Answer, Question

_GLANCE: Final = 0.2  # seconds until Ctrl-C is noticed at the latest

_Value = TypeVar("_Value")


def at_once(questions: Iterable[Callable[[], _Value]]) -> list[_Value]:
    """Return what each call returns, all made at the same time."""
    _interrupt_quietly()
    asked = [gevent.spawn(question) for question in questions]
    return [greenlet.get() for greenlet in asked]


def ask_program(path: Path, question: Question, *, timeout: float) -> Answer:
    """Return the answer, good or bad; raises ClickException where no program answers."""
    _interrupt_quietly()
    look_into(path.parent)
    try:
        return ask(path, question, timeout=timeout)
    except ControlUnavailable as error:
        raise click.ClickException(absent(path.stem, path, error)) from error


def absent(program: str, path: Path, error: Exception) -> str:
    """Return the words for a program that does not answer, and what to do about it."""
    why = str(error).removeprefix(f"{path}: ")
    return (
        f"the program {program} does not answer at {path} ({why}).\n"
        "Is the appliance running, and is this its --runtime-dir? See: appliance status"
    )


def _interrupt_quietly() -> None:
    """Keep gevent from printing Ctrl-C where it meets the hub; it is raised in the command all the same."""
    hub = gevent.get_hub()
    hub.NOT_ERROR = (*hub.NOT_ERROR, KeyboardInterrupt)
    gevent.spawn(_look_up)


def _look_up() -> None:
    """Keep the loop turning: a signal that comes just before it waits does not wake it."""
    while True:
        gevent.sleep(_GLANCE)
