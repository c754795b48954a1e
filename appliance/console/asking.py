"""Questions to the programs of a running appliance, and what an operator reads when nobody answers."""

from pathlib import Path

import click

from appliance.net.control import ControlUnavailable, ask
from appliance.wire.control import Answer, Question


def ask_program(path: Path, question: Question, *, timeout: float) -> Answer:
    """Return the answer, good or bad; raises ClickException where no program answers."""
    try:
        return ask(path, question, timeout=timeout)
    except ControlUnavailable as error:
        raise click.ClickException(absent(path.stem, path, error)) from error


def absent(program: str, path: Path, error: Exception) -> str:
    """Return the words for a program that does not answer, and what to do about it."""
    return (
        f"the program {program} does not answer at {path} ({error}).\n"
        "Is the appliance running, and is this its --runtime-dir? See: appliance status"
    )
